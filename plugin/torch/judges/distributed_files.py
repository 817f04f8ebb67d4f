"""PyTorch's test files of torch.distributed, those of a checkout's test/distributed.

usage: distributed_files.py CHECKOUT [--ranks N] [--visible N] [options of suite.py]

pytest, numpy, expecttest and psutil have to be installed. Both devices run copies of the files,
which begin with `import ranks` and have the device's name in place of CUDA's; the CPU's go over
Gloo.
The driver has to show as many devices as --visible says, by default as many as there are ranks.
Without --parts those of PARTS run; the checkout should be of the installed torch's version.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import sys

import distributed
import suite

# Files whose subject is not a backend's library, a compiler or the launcher.
PARTS = (
    "test_device_mesh tensor/test_dtensor tensor/test_redistribute tensor/test_pointwise_ops"
    " tensor/test_matrix_ops tensor/test_math_ops tensor/test_tensor_ops tensor/test_view_ops"
    " tensor/test_init tensor/test_random_ops tensor/test_embedding_ops tensor/test_api"
    " tensor/parallel/test_parallelize_api tensor/parallel/test_tp_style"
    " tensor/parallel/test_tp_examples"
    " _composable/fsdp/test_fully_shard_* pipelining/test_* checkpoint/test_* checkpoint/e2e/test_*"
    " test_c10d_common test_c10d_gloo test_c10d_functional_native test_pg_wrapper"
    " test_functional_differentials _composable/test_replicate_*"
    " _composable/test_composability/test_2d_composability test_composability"
    " fsdp/test_fsdp_misc fsdp/test_fsdp_grad_acc fsdp/test_wrap"
    " optim/test_zero_redundancy_optimizer _shard/*/test_*"
    " tensor/test_attention tensor/debug/test_debug_mode"
).split()


def copies(options: argparse.Namespace, device: str) -> pathlib.Path:
    return pathlib.Path(options.scratch) / device / "files"


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """Copies for each device: what a file imports from beside it is there, too."""
    theirs = options.checkout / "test" / "distributed"
    for device in suite.DEVICES:
        shutil.copytree(theirs, copies(options, device))
        for file in copies(options, device).rglob("*.py"):
            text = file.read_text()
            text = distributed.renamed(text, device)
            if file.name.startswith("test_"):
                text = distributed.beginning(text)
            file.write_text(text)
    found = [f.relative_to(theirs) for part in PARTS for f in sorted(theirs.glob(f"{part}.py"))]
    return [copies(options, "cpu") / f for f in found]


def copy_for(part: pathlib.Path, device: str) -> pathlib.Path:
    return pathlib.Path(str(part).replace("/cpu/files/", f"/{device}/files/"))


def common_name(name: str) -> str:
    """cpu/files/test_x.py::TestCPU::test_y_cpu as test_x.py::Test::test_y"""
    name = re.sub(r"^\w+/files/", "", name)
    name = re.sub(r"(CPU|PRIVATEUSE1|OCL)(?=::|$)", "", name)
    return re.sub(r"_(cpu|privateuse1|ocl)(?=_|$)", "", name)


def environment(device: str, options: argparse.Namespace) -> dict[str, str]:
    ranks = distributed.environment(device, options)
    ranks.update(JUDGED_RANKS=str(options.ranks), JUDGED_DEVICES=str(options.visible))
    ranks.update(WORLD_SIZE=str(options.ranks), JUDGED_ON_CPU="1")
    return ranks


# {part/file.py::Class::test: why it differs}
EXPLAINED: dict[str, str] = {
    r"test_device_mesh_reuse_default_group": "wants Gloo to refuse the device; it serves ocl",
    r"test_backend_override_argument_dict_with_idx_and_backend": "wants a group's name that is not "
    "custom, which those of all backends from outside PyTorch are",
    r"TestFullyShardCollectiveOps::test_all_gather_fp32": "the tests' group of threads copies on "
    "one thread's stream what other threads' streams still write",
    r"LocalTensor::test_dropout_partial_redistributes": "asks CUDA for its device",
    r"test_nontensor_activations": "one number of 144 differs by 1.2e-5, of 1e-5 allowed: rounding",
}

SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    environment=environment,
    explained=EXPLAINED,
    copy_for=copy_for,
    common_name=common_name,
    judges_skipped=True,
)


def main() -> int:
    p = suite.parser(SUITE)
    if sys.argv[1:2] != ["--work"]:
        p.add_argument("checkout", type=pathlib.Path)
        p.add_argument("--ranks", type=int, default=2, help="where a test leaves it open")
        p.add_argument("--visible", type=int, default=2, help="devices that the driver shows")
    return suite.main(SUITE, p)


if __name__ == "__main__":
    sys.exit(main())
