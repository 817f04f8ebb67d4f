"""ultralytics trains a nano model made from its YAML on drawn squares, and predicts with it.

usage: detect.py [--device ocl] [--epochs 2] [--amp]; ends with an error where the boxes of equal
weights on the device and on the CPU differ by more than LIMIT pixels.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time

import numpy as np

os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())
os.environ.setdefault("YOLO_OFFLINE", "true")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "tests/oracle"))
import torchvision_library  # noqa: E402

torchvision_library.load()  # PyPI's torchvision beside torch's CPU build

import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401  registers ocl where no entry point is installed
from PIL import Image  # noqa: E402
from ultralytics import YOLO  # noqa: E402

SIZE, LIMIT = 64, 0.05  # LIMIT in pixels: float32 sums in another order, through 100 layers


def draw(folder: pathlib.Path, count: int) -> pathlib.Path:
    """A data set in ultralytics' format: a bright square on noise, and where it is."""
    random = np.random.default_rng(0)
    for part in ("train", "val"):
        (folder / "images" / part).mkdir(parents=True)
        (folder / "labels" / part).mkdir(parents=True)
        for i in range(count):
            image = random.integers(0, 100, (SIZE, SIZE, 3), dtype=np.uint8)
            edge, left, top = random.integers(16, 32), *random.integers(0, 32, 2)
            image[top : top + edge, left : left + edge] = 250
            Image.fromarray(image).save(folder / f"images/{part}/{i}.png")
            box = np.array([left + edge / 2, top + edge / 2, edge, edge]) / SIZE
            label = " ".join(f"{number:.5f}" for number in box)
            (folder / f"labels/{part}/{i}.txt").write_text(f"0 {label}\n")
    data = folder / "squares.yaml"
    data.write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: [square]\n")
    return data


def train(device: str, epochs: int, amp: bool, count: int = 16) -> tuple[YOLO, object, float]:
    folder = pathlib.Path(tempfile.mkdtemp())
    data = draw(folder / "data", count)
    model = YOLO("yolo11n.yaml")
    start = time.perf_counter()
    model.train(
        data=str(data),
        epochs=epochs,
        imgsz=SIZE,
        batch=8,
        device=device,
        amp=amp,
        workers=0,
        project=str(folder / "runs"),
        plots=False,
        verbose=False,
    )
    return model, model.trainer, time.perf_counter() - start


def boxes(model: YOLO, device: str) -> torch.Tensor:
    """[n, 6]: the ten most likely boxes of one image, whatever their score is."""
    image = np.full((SIZE, SIZE, 3), 60, np.uint8)
    image[20:44, 12:36] = 250
    found = model.predict(image, device=device, imgsz=SIZE, conf=0, max_det=10, verbose=False)
    return found[0].boxes.data.cpu()


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="ocl")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--amp", action="store_true")
    options = p.parse_args()
    model, trainer, seconds = train(options.device, options.epochs, options.amp)
    model.predictor = None
    got = boxes(model, options.device)
    model.predictor = None
    want = boxes(model, "cpu")
    worst = (got - want).abs().max().item() if got.shape == want.shape else float("inf")
    print(
        f"ultralytics on {trainer.device}: {options.epochs} epochs in {seconds:.1f} s, "
        f"loss {sum(map(float, trainer.tloss.values())):.3f}, "
        f"{'with' if trainer.scaler.is_enabled() else 'without'} a scaler; "
        f"{len(got)} boxes differ from the CPU's by {worst:.1e} pixels"
    )
    return 0 if worst <= LIMIT and len(got) else 1


if __name__ == "__main__":
    sys.exit(main())
