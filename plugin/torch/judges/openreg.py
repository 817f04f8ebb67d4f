"""The tests that PyTorch has for its example of an out-of-tree device, torch_openreg, run on ocl.

usage: openreg.py CHECKOUT [options of suite.py]

CHECKOUT is a copy of github.com/pytorch/pytorch, or of the folder TESTS of it; pytest, psutil and
expecttest have to be installed. In copies of the files the name openreg becomes ocl. The tests are
of a device: on the CPU there is nothing to compare with. They want two devices, which PoCL makes of
one processor.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
from typing import Any

import suite

TESTS = "test/cpp_extensions/open_registration_extension/torch_openreg/tests"
# What torch_openreg's own code says or has, and what this is not meant to.
EXPLAINED = {
    "test_invalid_device_index|test_device_poison_fork": "an error, of another text",
    "test_device_properties": "torch's memory information is a pair; the example has none",
    "numpy_serialization": "a stored file names the example's device",
    "TestFactory::test_empty$": "torch 2.13 has no named tensors, on the CPU neither",
    "test_device_capability": "quantized types are not supported",
    "test_autocast_float32_supported|test_openreg_autocast_error_message": "lists of its own",
    "test_offset_unsupported|custom_|autograd_function|StructuredCodegen": "operators of its own",
    "overrideable_backward": "the fused attention gives no gradient of its mask: declined",
    "[qQ]uanti": "quantized types are not supported",
    "metadata|backend_meta|TestSerialization::test_serialization$": "has no metadata of its own",
}


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """Copies of the files, in which torch_openreg is called torch_ocl."""
    theirs = options.checkout / TESTS
    for file in sorted((theirs if theirs.is_dir() else options.checkout).glob("test_*.py")):
        text = re.sub("(?<![A-Za-z])(torch_)?openreg", r"\1ocl", file.read_text())
        # The example is loaded with torch, also in processes that a test starts.
        text = re.sub("^import torch$", "import torch\nimport torch_ocl", text, flags=re.M)
        (pathlib.Path(options.scratch) / file.name).write_text(text)
    return sorted(pathlib.Path(options.scratch).glob("test_*.py"))


def prepare(device: str) -> list[Any]:
    """In the child."""
    import torch_ocl  # noqa: F401

    return []


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    environment=lambda device, options: {
        "POCL_DEVICES": os.environ.get("POCL_DEVICES", "pthread pthread")
    },
    explained=EXPLAINED,
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.set_defaults(devices=["ocl"])
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        folders = (options.checkout, options.checkout / TESTS)
        if not any(list(folder.glob("test_*.py")) for folder in folders):
            p.error(f"CHECKOUT is to have {TESTS}")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
