"""kornia's own tests on ocl and on torch's CPU.

usage: kornia.py CHECKOUT [options of suite.py]

CHECKOUT is a copy of github.com/kornia/kornia, whose package and tests are used; pytest, kornia_rs,
pillow and requests have to be installed. A part is a folder of tests. The suite takes the names of
its devices from a list of its own; there ocl stands in the CPU's place, so that tests have one name
on both devices. What downloads weights, or compiles, is left out.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import suite

# They download weights, export to ONNX, call torch.compile or measure times.
WITHOUT = {"contrib", "integration", "models", "onnx", "performance"}
EXPLAINED = {
    "TestColorJitterGen": "expects the random numbers of the CPU; the suite skips it on CUDA",
    "test_lightglue": "kornia looks up its thresholds by a device's name",
    "test_register_with_shape_mismatch": "kornia makes a matrix on the CPU",
    "test_7point_opencv": "float32: two eigenvectors of eigenvalues of 1e-7, from residuals of 10 "
    "epsilons where LAPACK's are of 3",
}
ERRORS = {
    r"where\.self_out: Expected all tensors to be on the same device": "kornia before 0.9.0 draws "
    "on the CPU whom to change, and where() takes no tensors of two devices",
}


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """Folders rather than files: kornia takes seconds to be imported."""
    folders = (f for f in (options.checkout / "tests").iterdir() if f.name not in WITHOUT)
    return sorted(f for folder in folders if folder.is_dir() for f in halves(folder))


def halves(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders in a folder, and the files beside them."""
    inner = [f for f in folder.iterdir() if f.is_dir() and any(f.rglob("test_*.py"))]
    return [*inner, *folder.glob("test_*.py")] if inner else [folder]


class Device:
    """A pytest plugin: the suite's device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def pytest_sessionstart(self, session: Any) -> None:
        import torch

        sys.modules["conftest"].TEST_DEVICES["cpu"] = torch.device(self.device)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Every test begins with the same random numbers, whichever ran before it."""
        import torch

        torch.manual_seed(0)


def prepare(device: str) -> list[Any]:
    """In the child, which starts in CHECKOUT."""
    sys.path.insert(0, str(pathlib.Path.cwd()))
    if device == "ocl":
        import torch_ocl  # noqa: F401
    return [Device("ocl:0" if device == "ocl" else "cpu")]


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    root=lambda options: options.checkout,
    command=lambda options: ["-W", "ignore", "--device=cpu", "--dtype=float32"],
    environment=lambda device, options: {"PYTHONDONTWRITEBYTECODE": "1"},
    explained=EXPLAINED,
    errors=ERRORS,
    prefix="tests/",
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        if not (options.checkout / "tests/augmentation").is_dir():
            p.error("CHECKOUT is to have tests/augmentation")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
