"""Lightning trains the network of ../digits.py on real handwritten digits, accelerator="ocl".

usage: lightning_digits.py [--accelerator ocl] [--precision 32-true] [--epochs 3]; ends with an
error below an accuracy of GOAL.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from lightning import pytorch as pl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import digits  # noqa: E402

GOAL = 0.93


class Digits(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = digits.network()
        self.right = self.seen = 0

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.network(images), labels)

    def test_step(self, batch: list[torch.Tensor], index: int) -> None:
        images, labels = batch
        self.right += (self.network(images).argmax(1) == labels).sum().item()
        self.seen += len(labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def train(
    accelerator: str, precision: str = "32-true", epochs: int = 3
) -> tuple[torch.device, float, float]:
    """The device that was used, the accuracy on digits that were not trained on, and seconds."""
    pl.seed_everything(1, verbose=False)
    images, labels = digits.load()
    data = torch.utils.data.TensorDataset(images, labels)
    split = len(data) * 4 // 5
    trained = torch.utils.data.DataLoader(
        torch.utils.data.Subset(data, range(split)), batch_size=64, shuffle=True
    )
    tested = torch.utils.data.DataLoader(
        torch.utils.data.Subset(data, range(split, len(data))), batch_size=256
    )
    model = Digits()
    trainer = pl.Trainer(
        accelerator=accelerator,
        precision=precision,
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=sys.stdout.isatty(),
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(model, trained)
    seconds = time.perf_counter() - start
    trainer.test(model, tested, verbose=False)
    return trainer.strategy.root_device, model.right / model.seen, seconds


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--accelerator", default="ocl")
    p.add_argument("--precision", default="32-true")
    p.add_argument("--epochs", type=int, default=3)
    options = p.parse_args()
    device, accuracy, seconds = train(options.accelerator, options.precision, options.epochs)
    print(
        f"Lightning on {device}, {options.precision}: {options.epochs} epochs in {seconds:.1f} s, "
        f"accuracy {accuracy:.3f}"
    )
    return 0 if accuracy >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
