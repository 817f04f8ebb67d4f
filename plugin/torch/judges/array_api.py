"""The array API standard's own test suite on ocl and on torch's CPU: what fails on ocl alone.

usage: array_api.py CHECKOUT [--examples N] [options of suite.py]

CHECKOUT is a copy of github.com/data-apis/array-api-tests with its submodule; pytest,
pytest-json-report, hypothesis, ndindex and array_api_compat have to be installed. Both devices get
the same examples.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import suite

NAMESPACE = (
    'exec(\'import torch; import torch_ocl; torch.set_default_device("{}"); '
    "import array_api_compat.torch as xp')"
)
# Tests that ocl alone fails, with the reason why that is no defect of ocl's.
EXPLAINED = {
    "test_dlpack_device": "the suite's list of device types lacks kDLExtDev; kDLOpenCL would "
    "promise a cl_mem in place of an address",
    "test_dunder_dlpack": "asks for memory on the CPU without a copy",
    "test_vecdot": "products of uint16 matrices have no kernel: declined",
}


def command(options: argparse.Namespace) -> list[str]:
    return ["--disable-deadline", "--derandomize", f"--max-examples={options.examples}"]


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=lambda options: sorted((options.checkout / "array_api_tests").glob("test_*.py")),
    root=lambda options: options.checkout,
    command=command,
    environment=lambda device, options: {"ARRAY_API_TESTS_MODULE": NAMESPACE.format(device)},
    explained=EXPLAINED,
    prefix="array_api_tests/",
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())
    p.add_argument("--examples", type=int, default=20, help="of Hypothesis, for each test")

    def check(options: argparse.Namespace) -> None:
        if not (options.checkout / "array-api" / "src").is_dir():
            p.error(f"{options.checkout} has no array-api/src: its submodule is not checked out")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
