"""Lightning's own tests, of Trainer and of Fabric, on ocl and on the CPU.

usage: lightning.py CHECKOUT [options of suite.py]

CHECKOUT is a copy of github.com/Lightning-AI/pytorch-lightning, whose package and tests are used;
pytest, pytest-timeout, psutil, torchmetrics, lightning-utilities, cloudpickle and tensorboardX have
to be installed. On ocl Lightning chooses torch_ocl's accelerator for "auto" and "gpu". The tests
are copies: in those that want one CUDA device its names are ocl's, so that ocl runs them, and tests
of one process that ask for the CPU by name take the device that is judged. What wants several
devices is skipped.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import os
import pathlib
import re
import shutil
import sys
from typing import Any

import suite

# Folders and files, a process for each: one for each file would import for longer than it tests.
PARTS = (
    *("accelerators", "callbacks", "checkpointing", "core", "loops", "models", "overrides"),
    *("plugins", "profilers", "strategies", "trainer/[cdflop]*", "trainer/test_*.py", "tuner"),
    "utilities",
)
FABRIC = ("accelerators", "plugins/precision", "strategies", "test_*.py", "utilities")
# Of several devices or processes, of other accelerators, of formats for other programs.
IGNORED = ("ddp", "fsdp", "deepspeed", "model_parallel", "launchers", "xla", "mps", "_dp.")
IGNORED += ("bitsandbytes", "transformer_engine", "onnx", "tensorrt", "torchscript")
# In a test that wants one CUDA device.
NAMES = (
    (r"torch\.cuda\b", "torch.ocl"),
    (r"torch\.device\((?=f?[\"']cuda)", "JudgedDevice("),
    (r"([\"'])cuda(?=[:\"'])", r"\1ocl"),
    (r"\.cuda\(\)", '.to(device="ocl")'),
    (r"\bCUDAAccelerator\b", "JudgedAccelerator"),
    ("bf16_cuda=True", "bf16_cuda=False"),
)
SEVERAL = r"devices=[\"']?[2-9-]|num_nodes|strategy|ddp|fsdp|num_processes"
EXPLAINED = {
    "available_accelerators_in_registry": "has a list of accelerators",
    "get_nvidia_gpu_stats": "asks the program nvidia-smi",
    "map_location_automatic": "takes CUDA's devices away, and none else",
    "gpu_accelerator_(backend_choice_|misconf)|auto_selection|accelerator_cpu$|choice_ddp_cuda": (
        "pretends that there are other devices; the integration asks torch, and finds ocl"
    ),
}
ERRORS = {
    "cannot train together yet|there are 1 ocl devices": "one device for each Trainer",
    "requires a GPU accelerator": "FSDP is of CUDA alone",
    "No backend type associated|no strategy of several": "torch.distributed has no backend for ocl",
}


def changed(text: str, fabric: bool) -> str:
    """A file of tests, with the names of devices changed in its functions."""
    lines = text.splitlines(keepends=True)
    library = "JudgedFabric" if fabric else "JudgedTrainer"
    alone = "dataloader_iter" not in text  # such models take batches where the loader left them
    for node in ast.parse(text).body:
        helper = isinstance(node, ast.ClassDef) and node.name.endswith("GPU")
        if not helper and not isinstance(node, ast.FunctionDef):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
        own = "".join(lines[first : node.end_lineno])
        if helper or re.search("min_cuda_gpus=(1|True)", own):
            for pattern, name in NAMES:
                own = re.sub(pattern, name.replace("JudgedAccelerator", library), own)
        elif node.name.startswith("test") and not re.search(SEVERAL, own) and alone:
            judged = own.replace('accelerator="cpu"', "accelerator=JudgedName")
            own = own if '"cpu"' in judged else judged
        lines[first : node.end_lineno] = own.splitlines(keepends=True)
    return "".join(lines)


def root(options: argparse.Namespace) -> pathlib.Path:
    return pathlib.Path(options.scratch) / "tests"


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """Copies of the files."""
    folder = root(options)
    shutil.copytree(options.checkout / "tests", folder)
    for file in folder.rglob("test_*.py"):
        file.write_text(changed(file.read_text(), "tests_fabric" in file.parts))
    found = [f for name in PARTS for f in (folder / "tests_pytorch").glob(name)]
    return sorted(found) + sorted(f for n in FABRIC for f in (folder / "tests_fabric").glob(n))


def prepare(device: str) -> list[Any]:
    """In the child: what the copies ask for."""
    here = str(pathlib.Path(__file__).parent)  # this file has their name: their folder comes first
    sys.path[:] = [*(folder for folder in sys.path if folder != here), here]
    import torch

    if device == "ocl":
        import torch_ocl  # noqa: F401
    from lightning.fabric import accelerators as fabric
    from lightning.fabric.utilities.testing import _runif
    from lightning.pytorch import accelerators as trainer

    chosen = "CPUAccelerator"
    if device == "ocl":
        import lightning.pytorch.trainer  # noqa: F401

        chosen = "OclAccelerator"
        _runif.num_cuda_devices = torch.ocl.device_count
    vars(builtins).update(
        JudgedName=device,
        JudgedDevice=torch.device if device == "ocl" else lambda *name: None,
        JudgedFabric=getattr(fabric, chosen),
        JudgedTrainer=getattr(trainer, chosen),
    )
    return []


def environment(device: str, options: argparse.Namespace) -> dict[str, str]:
    folders = [options.checkout / "src", root(options), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    root=root,
    command=lambda options: ["-W", "ignore", *(f"--ignore-glob=*{name}*" for name in IGNORED)],
    environment=environment,
    explained=EXPLAINED,
    errors=ERRORS,
    prefix="tests_",
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        if not (options.checkout / "tests/tests_pytorch/conftest.py").is_file():
            p.error("CHECKOUT is to have tests/tests_pytorch")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
