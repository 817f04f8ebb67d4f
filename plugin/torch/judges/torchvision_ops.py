"""torchvision's own tests of its operators on ocl and on torch's CPU.

usage: torchvision_ops.py CHECKOUT [options of suite.py]

CHECKOUT is a copy of github.com/pytorch/vision, of which test/test_ops.py is used; torchvision
itself, pytest and pytest-mock have to be installed. The suite's lists of devices have the one
device; what it runs on CUDA alone is skipped.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import suite

ORACLE = pathlib.Path(__file__).resolve().parents[3] / "tests/oracle"
EXPLAINED = {
    "opcheck|test_autograd_registration": "torch's check knows the CPU, CUDA and XPU alone",
    r"TestFocalLoss::test_correct_ratio\[1-dtype1": "float16: of the numbers that the seed draws "
    "one has a loss of 0, on the CPU, too, and the ratio is 0 / 0",
}


def prepare(device: str) -> list[Any]:
    """In the child, which starts in CHECKOUT."""
    sys.path[:0] = [str(pathlib.Path.cwd() / "test"), str(ORACLE)]
    import pytest
    import torchvision_library

    if torchvision_library.load() is None:
        sys.exit("torchvision is not installed, or does not fit torch")
    if device == "ocl":
        import torch_ocl  # noqa: F401
    import common_utils

    one = (pytest.param(device, id="device"),)  # one name for both devices
    common_utils.cpu_and_cuda = common_utils.cpu_and_cuda_and_mps = lambda: one
    return []


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=lambda options: [options.checkout / "test/test_ops.py"],
    root=lambda options: options.checkout,
    environment=lambda device, options: {"PYTHONDONTWRITEBYTECODE": "1"},
    explained=EXPLAINED,
    prefix="test/test_ops.py::",
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        if not (options.checkout / "test/test_ops.py").is_file():
            p.error("CHECKOUT is to have test/test_ops.py")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
