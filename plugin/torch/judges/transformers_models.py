"""Hugging Face's tests of transformers' models on ocl and on torch's CPU.

usage: transformers_models.py SOURCE [options of suite.py]

SOURCE is transformers' source of the version that is installed: a checkout of
github.com/huggingface/transformers, or its source package from PyPI
(pip download --no-deps --no-binary :all: transformers==VERSION, unpacked). pytest, parameterized,
accelerate and psutil have to be installed. A checkout has a folder of tests for each model; the
package has the tests that all models share, which run here on small models of small_models.py, but
without those of `generate` and of exporting.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import types
from typing import Any

import small_models
import suite

EXPLAINED = {
    "can_load_with_global_device_set": "starts a process, which lacks what stands in here for "
    "files that the package does not have",
    "flex_attention|test_torch_compile|sdpa_can_compile": "Inductor makes no code for ocl yet",
}
# What transformers asks of an accelerator that it does not know: TRANSFORMERS_TEST_DEVICE_SPEC.
DEVICE = """
import torch, torch_ocl
DEVICE_NAME = "ocl"
MANUAL_SEED_FN = torch.ocl.manual_seed
EMPTY_CACHE_FN = torch.ocl.empty_cache
DEVICE_COUNT_FN = torch.ocl.device_count
"""
# Tolerances of a type are for devices that a test names; others get one below float16's precision.
# `upstream/transformers.patch` proposes the same for all devices.
NAMED = ('elif torch_device == "xpu":', 'elif torch_device in ["xpu", "ocl"]:')
# In place of files that the package lacks.
MISSING = {
    "tests.exporters": {},
    "tests.exporters.test_export": {"ExportTesterMixin": type("ExportTesterMixin", (), {})},
    "tests.generation": {},
    "tests.generation.test_utils": {"GenerationTesterMixin": type("GenerationTesterMixin", (), {})},
}


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """A file for each model: of the checkout, or one that takes the shared tests."""
    folder = root(options)
    folder.mkdir()
    (folder / "ocl_device.py").write_text(DEVICE)
    # Tests that start processes rely on torch finding ocl by itself.
    info = folder / "torch_ocl-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_ocl\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nocl = torch_ocl:_autoload\n")
    (folder / "tests").mkdir()
    for file in (options.source / "tests").iterdir():
        (folder / "tests" / file.name).symlink_to(file)
    common = folder / "tests/test_modeling_common.py"
    text = common.read_text()
    if NAMED[0] not in text:
        sys.exit(f"{common.resolve()} names its devices in a way that is not known")
    common.unlink()
    common.write_text(text.replace(*NAMED))
    theirs = options.source / "tests/models"
    if theirs.is_dir():
        return sorted((folder / "tests/models").glob("*/test_modeling_*.py"))
    files = []
    for name in small_models.MODELS:
        file = folder / f"models/{name}/test_modeling_{name}.py"
        file.parent.mkdir(parents=True)
        file.write_text(f"import small_models\nglobals().update(small_models.tests({name!r}))\n")
        files.append(file)
    return files


def root(options: argparse.Namespace) -> pathlib.Path:
    return pathlib.Path(options.scratch) / "suite"


def prepare(device: str) -> list[Any]:
    """In the child, which starts in that folder."""
    sys.path[:0] = [str(pathlib.Path.cwd()), str(pathlib.Path(__file__).parent)]
    if device == "ocl":
        import torch_ocl  # noqa: F401
    for name, content in MISSING.items():
        path = pathlib.Path(*name.split("."))
        if not path.with_suffix(".py").exists() and not path.is_dir():
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(content)
    return []


def environment(device: str, options: argparse.Namespace) -> dict[str, str]:
    # Some tests start a process of their own, which imports the test's file.
    folders = [pathlib.Path(__file__).parent, root(options), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(map(str, folders))
    told = {"TRANSFORMERS_TEST_DEVICE": device, "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
    told["TORCH_DEVICE_BACKEND_AUTOLOAD"] = str(int(device == "ocl"))
    return told | ({"TRANSFORMERS_TEST_DEVICE_SPEC": "ocl_device.py"} if device == "ocl" else {})


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    root=root,
    command=lambda options: ["-W", "ignore", "--import-mode=importlib"],
    environment=environment,
    explained=EXPLAINED,
    prefix="models/",
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("source", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        if not (options.source / "tests/test_modeling_common.py").is_file():
            p.error("SOURCE is to have tests/test_modeling_common.py")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
