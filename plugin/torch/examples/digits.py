"""The digits network of the C++ demo in PyTorch: trains on real handwritten digits on `ocl` and
prints the test accuracy.

usage: digits.py [--device ocl] [--epochs 12] [--batch 64] [--seed 1]; ends with an error below an
accuracy of 0.97.
"""

from __future__ import annotations

import argparse
import gzip
import pathlib
import sys
import time

import torch
from torch import nn

DATA = pathlib.Path(__file__).resolve().parents[3] / "src" / "demo" / "optdigits.csv.gz"
GOAL = 0.97


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """Images [n, 1, 8, 8] from 0 to 1 and labels [n], in the file's order."""
    with gzip.open(DATA, "rt") as lines:
        rows = torch.tensor([[float(x) for x in line.split(",")] for line in lines if line.strip()])
    return rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()


def network() -> nn.Sequential:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]

    return nn.Sequential(
        *block(1, 32),
        *block(32, 64),
        nn.MaxPool2d(2),
        *block(64, 64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(64 * 2 * 2, 10),
    )


def shifted(images: torch.Tensor) -> torch.Tensor:
    """The batch moved by up to one pixel in each direction: the same for all its images."""
    dy, dx = torch.randint(3, (2,)).tolist()
    return nn.functional.pad(images, (1, 1, 1, 1))[:, :, dy : dy + 8, dx : dx + 8]


def show(epoch: int, epochs: int, done: float, text: str) -> None:
    if sys.stdout.isatty() or done >= 1:
        bar = ("█" * round(24 * done)).ljust(24, "░")
        print(f"\repoch {epoch:2}/{epochs} {bar} {text}", end="\n" if done >= 1 else "", flush=True)


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--device", default="ocl")
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument(
        "--trace", metavar="FILE", help="write a trace for https://ui.perfetto.dev to this file"
    )
    options = p.parse_args()
    if options.device.startswith("ocl"):
        import torch_ocl  # noqa: F401  not needed where the package is installed: torch loads it by itself

        print(f"device       {torch.ocl.get_device_name(options.device)}")
    torch.manual_seed(options.seed)
    images, labels = (t.to(options.device) for t in load())
    half = len(labels) // 2
    model = network().to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: min(1.0, 2 * (options.epochs - epoch) / options.epochs)
    )
    if options.trace:
        torch.ocl.profiler.start(path=options.trace)
    begin = time.perf_counter()
    for epoch in range(1, options.epochs + 1):
        model.train()
        order = torch.randperm(half, device=options.device)
        loss_sum, right, start = 0.0, 0, time.perf_counter()
        steps = range(0, half, options.batch)
        for step in steps:
            rows = order[step : step + options.batch]
            target = labels[rows]
            output = model(shifted(images[rows]))
            loss = nn.functional.cross_entropy(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(rows)
            right += (output.argmax(1) == target).sum()
            if step % (8 * options.batch) == 0 or step == steps[-1]:
                seen = step + len(rows)
                text = (
                    f"loss {float(loss_sum) / seen:.3f}  accuracy {int(right) / seen:.3f}  "
                    f"{seen / (time.perf_counter() - start):6.0f} images/s"
                )
                show(epoch, options.epochs, seen / half, text)
        schedule.step()
    if options.trace:
        torch.ocl.profiler.stop()
    print(f"training     {time.perf_counter() - begin:.1f} s")
    model.eval()
    with torch.no_grad():
        predicted = model(images[half:]).argmax(1).cpu()
    truth = labels[half:].cpu()
    confusion = torch.zeros(10, 10, dtype=torch.long).index_put_(
        (truth, predicted), torch.tensor(1), accumulate=True
    )
    print("\ntrue \\ predicted")
    for digit, row in enumerate(confusion.tolist()):
        print(f"  {digit} " + "".join(f"{n or '·':>5}" for n in row))
    if options.device.startswith("ocl"):
        print(f"memory peak  {torch.ocl.max_memory_allocated() / 2**20:.1f} MiB")
        print(f"fallbacks    {sum(torch.ocl.fallback_counts().values())}")
    accuracy = (predicted == truth).float().mean().item()
    print(f"test accuracy: {accuracy:.3f}")
    return 0 if accuracy >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
