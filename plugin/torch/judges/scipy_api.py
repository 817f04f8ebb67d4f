"""SciPy's own tests of its array API functions, with torch on ocl and on the CPU: what differs.

usage: scipy_api.py [options of suite.py]

SciPy's wheel brings its tests; scipy, pytest and hypothesis have to be installed. Those of its test
files that use the fixture `xp` run with the backend torch alone and SCIPY_DEVICE as the default
device: SciPy then skips what it computes in code of its own, which is the CPU's.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import re
import sys
from typing import Any

import suite

EXPLAINED: dict[str, str] = {
    r"TestPower::test_(batch|vectorization)": "SciPy hands the tensors to NumPy",
    r"TestMinimumPhase::test_hilbert": "Python's min() reads a tensor element by element: minutes",
}
USES_BACKENDS = re.compile(r"make_xp_test_case|skip_xp_backends|array_api_backends|\bxp\)")


def place() -> pathlib.Path:
    """Of SciPy's package."""
    found = importlib.util.find_spec("scipy")
    if found is None or found.origin is None:
        sys.exit("scipy is not installed: pip install scipy pytest hypothesis")
    return pathlib.Path(found.origin).resolve().parent


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    files = sorted(place().rglob("tests/test_*.py"))
    return [f for f in files if USES_BACKENDS.search(f.read_text())]


def prepare(device: str) -> list[Any]:
    """Before SciPy's conftest.py sets the default device: a build tree is not loaded by torch."""
    if device == "ocl":
        import torch_ocl  # noqa: F401
    return []


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    root=lambda options: place().parent,
    command=lambda options: ["-m", "array_api_backends", "-W", "ignore"],
    environment=lambda device, options: {"SCIPY_ARRAY_API": '["torch"]', "SCIPY_DEVICE": device},
    explained=EXPLAINED,
    prefix="scipy/",
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(suite.main(SUITE, suite.parser(SUITE)))
