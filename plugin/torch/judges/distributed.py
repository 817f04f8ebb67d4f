"""PyTorch's tests of torch.distributed, distributed_test.py of the installed torch: two ranks.

usage: distributed.py [options of suite.py]

pytest, numpy and expecttest have to be installed. On the CPU the file is run as it is, over Gloo;
on ocl in a copy, in which CUDA's names are ocl's: tests of tensors on GPUs, which the CPU skips,
run there, too. The backend's name stays gloo, which serves tensors on ocl (patches of
torch_ocl/distributed), so that what the file asks of a backend by name is asked of ocl.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import re
import sys
import tempfile

import suite

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 2
THEIRS = "torch.testing._internal.distributed.distributed_test"
# As PyTorch's own test/distributed/test_distributed_spawn.py, for either device.
TESTS = f'''
import importlib, os
import ranks

OURS = os.environ["JUDGED"] == "ocl"
theirs = importlib.import_module("ocl_distributed_test" if OURS else "{THEIRS}")


class TestDistBackendWithSpawn(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()
'''
# Names that stay: functions and modules of torch, what is compared with CUDA's version.
KEPT = (
    r"common_cuda|TEST_CUDA|DeviceType\.CUDA|ProfilerActivity\.CUDA|torch\.version\.cuda|use_cuda"
)


def renamed(text: str, device: str = "ocl") -> str:
    """The file with the device's names; those of tests stay, so that the CPU's are beside them."""

    def line(match: re.Match[str]) -> str:
        whole = match[0]
        if re.search(KEPT, whole) or re.match(r"\s*def test_|\s*import |\s*from ", whole):
            return whole
        return re.sub(r"(?<![A-Za-z_])cuda(?![a-z_])", device, whole)

    text = re.sub(r"^.*cuda.*$", line, text, flags=re.M)
    # Some ask for a group of NCCL by name, beside the one that the file was told to use.
    text = text.replace('backend="nccl"', 'backend="gloo"').replace("Backend.NCCL", "Backend.GLOO")
    # Rows of a profile are called ocl:all_reduce or gloo:all_reduce, as the tensors are.
    text = text.replace("dist.get_backend() + profiling_title_postfix", "profiling_title_postfix")
    return text.replace(f"{device}:nccl", f"{device}:{'ocl' if device == 'ocl' else 'gloo'}")


def beginning(text: str) -> str:
    """The file with `import ranks` before its own imports."""
    first = re.search(r"^(import|from) (?!__future__)", text, flags=re.M)
    assert first
    return text[: first.start()] + "import ranks\n" + text[first.start() :]


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """A file of tests for both devices, and the copy, which it imports on ocl."""
    found = importlib.util.find_spec(THEIRS)
    assert found is not None and found.origin is not None
    scratch = pathlib.Path(options.scratch)
    text = beginning(renamed(pathlib.Path(found.origin).read_text()))
    (scratch / "ocl_distributed_test.py").write_text(text)
    file = scratch / "test_distributed_spawn.py"
    file.write_text(TESTS)
    return [file]


def environment(device: str, options: argparse.Namespace) -> dict[str, str]:
    """What test_distributed_spawn.py is told by PyTorch's run_test.py."""
    path = [str(options.scratch), str(HERE), os.environ.get("PYTHONPATH", "")]
    return {
        "BACKEND": "gloo",
        "WORLD_SIZE": str(RANKS),
        "TEMP_DIR": tempfile.mkdtemp(dir=options.scratch),
        "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"),
        "JUDGED": device,
        "JUDGED_DEVICES": str(RANKS),
        "JUDGED_RANKS": str(RANKS),
        "OCLTENSOR_CPU_DEVICES": os.environ.get("OCLTENSOR_CPU_DEVICES", str(RANKS)),
        "PYTHONPATH": os.pathsep.join(path),
    }


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    environment=environment,
    explained={
        r"test_sparse_all_reduce_sum_cuda$": "sparse gradients are refused: src/docs/scale_out.md",
        r"test_ddp_uneven_inputs$": "convolutions that take PoCL minutes on two cores",
        r"test_monitored_barrier_allreduce_hang": "wants NCCL's words for a time limit",
    },
    prefix="test_distributed_spawn.py::TestDistBackendWithSpawn::",
    judges_skipped=True,
)


def main() -> int:
    return suite.main(SUITE, suite.parser(SUITE))


if __name__ == "__main__":
    sys.exit(main())
