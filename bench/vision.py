"""torchvision's operators on ocl beside its own kernels: ms of nms and of pooling regions.

usage: vision.py [--devices cpu ocl cuda] [--boxes 1000 10000 100000] [--rounds 3]

Boxes are 5 to 65 wide at random places of 1000 x 1000, with a threshold of 0.5; every device keeps
the same ones, which is checked. roi_align and roi_pool: 512 regions of 256 channels of 100 x 100 in
7 x 7 bins, forward, and with the gradient of the images. The fastest round counts. The results of
nms are read by the host; behind the others the device is waited for.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/oracle"))
import torchvision_library  # noqa: E402


def fastest(body: Callable[[], object], device: str, rounds: int) -> float:
    """Milliseconds of the fastest round, after one that is not counted."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        body()
        if device != "cpu":
            torch.get_device_module(device).synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:]) * 1e3


def boxes_of(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    corner = torch.rand(count, 2) * 1000
    return torch.cat((corner, corner + 5 + torch.rand(count, 2) * 60), 1), torch.rand(count)


def show(name: str, bodies: dict[str, Callable[[], object]], rounds: int) -> None:
    times = [f"{fastest(body, device, rounds):12.2f}" for device, body in bodies.items()]
    print(f"{name:<32}" + "".join(times), flush=True)


def nms(devices: list[str], count: int, rounds: int) -> None:
    boxes, scores = boxes_of(count)
    kept: dict[str, list[int]] = {}
    bodies: dict[str, Callable[[], object]] = {}
    for device in devices:
        moved = boxes.to(device), scores.to(device)

        def body(device: str = device, moved: tuple = moved) -> None:
            kept[device] = torch.ops.torchvision.nms(*moved, 0.5).tolist()

        bodies[device] = body
    show(f"nms, {count} boxes", bodies, rounds)
    if any(k != kept[devices[0]] for k in kept.values()):
        sys.exit("the devices keep different boxes")


def regions(devices: list[str], name: str, options: tuple, backward: bool, rounds: int) -> None:
    images, gradient = torch.randn(2, 256, 100, 100), torch.randn(512, 256, 7, 7)
    corner = torch.rand(512, 2) * 60
    rois = torch.cat((torch.arange(512.0)[:, None] % 2, corner, corner + 40), 1)
    bodies: dict[str, Callable[[], object]] = {}
    for device in devices:
        x, r, g = (t.to(device) for t in (images, rois, gradient))
        x.requires_grad_(backward)

        def body(x: torch.Tensor = x, r: torch.Tensor = r, g: torch.Tensor = g) -> None:
            out = getattr(torch.ops.torchvision, name)(x, r, 1.0, 7, 7, *options)
            if backward:
                torch.autograd.grad(out if isinstance(out, torch.Tensor) else out[0], x, g)

        bodies[device] = body
    show(f"{name}{', backward' if backward else ''}", bodies, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", nargs="+", default=["cpu", "ocl"])
    parser.add_argument("--boxes", nargs="+", type=int, default=[1000, 10000, 100000])
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    if torchvision_library.load() is None:
        sys.exit("torchvision is not installed, or does not fit torch")
    torch.manual_seed(0)
    print(f"{'ms':<32}" + "".join(f"{d:>12}" for d in a.devices))
    for count in a.boxes:
        nms(a.devices, count, a.rounds)
    for name, options in (("roi_align", (2, False)), ("roi_pool", ())):
        for backward in (False, True):
            regions(a.devices, name, options, backward, a.rounds)


if __name__ == "__main__":
    main()
