"""What copies of PyTorch's distributed tests import first: forked ranks, and ocl as CUDA is there.

The process of the tests imports torch and the file once, and its ranks are forks of it, because a
rank that starts anew imports for seconds. On ocl this process must not ask the driver for its
devices before: their number comes from the environment. Where a test of one process has used ocl,
ranks are started anew from there on.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

OURS = os.environ.get("JUDGED") == "ocl"
DEVICES = int(os.environ.get("JUDGED_DEVICES", "2"))
RANKS = int(os.environ.get("JUDGED_RANKS", "2"))

if OURS:
    from torch_ocl import _C

    torch.ocl.is_available = torch.accelerator.is_available = lambda: True
    torch.ocl.device_count = torch.accelerator.device_count = lambda: DEVICES

torch.multiprocessing.set_start_method("fork", force=True)
# Ranks end with the process of the tests, which is killed where a test takes too long.
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
os.register_at_fork(after_in_child=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

from torch.testing._internal import common_cuda, common_fsdp  # noqa: E402
from torch.testing._internal import common_distributed as common  # noqa: E402
from torch.testing._internal.distributed import (  # noqa: E402,F401  they make backends
    fake_pg,
    multi_threaded_pg,
)
from torch.testing._internal.distributed._tensor import common_dtensor  # noqa: E402


def _start(self: Any) -> None:
    """In place of MultiProcessTestCase's, which starts them anew."""
    how = "spawn" if OURS and _C.is_initialized() else "fork"
    self._start_processes(torch.multiprocessing.get_context(how).Process)


common.MultiProcessTestCase._spawn_processes = _start
common.DEFAULT_WORLD_SIZE = RANKS
common_dtensor.NUM_DEVICES = RANKS


def _needs(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """PyTorch's skip_if_lt_x_gpu, which knows CUDA, HPU and XPU."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if count <= DEVICES:
                return function(*args, **kwargs)
            skip = common.TEST_SKIPS[f"multi-gpu-{count}"]
            if not common._maybe_handle_skip_if_lt_x_gpu(args, skip.message):
                sys.exit(skip.exit_code)
            return None

        return wrapper

    return decorate


def _on_its_device(old: Callable[..., Any]) -> Callable[..., Any]:
    """Each rank chooses its device before it makes a group, as with NCCL's."""

    @functools.wraps(old)
    def init_pg(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device_type == "ocl":
            torch.accelerator.set_device_index(self.rank)
        return old(self, *args, **kwargs)

    return init_pg


def _serve_all(device: str) -> None:
    """Tests of GPUs run on the device, whatever it is."""
    common.DistTestCases.backend_feature["ocl"] = {"gloo"}
    for backend in ("fake", "threaded"):
        if device not in dist.Backend.backend_capability[backend]:
            dist.Backend.backend_capability[backend].append(device)
    common.init_multigpu_helper = lambda size, backend: {rank: [rank] for rank in range(size)}
    common.skip_if_no_gpu = _needs(int(os.environ.get("WORLD_SIZE", RANKS)))
    for module in (common, common_dtensor):
        module.skip_if_lt_x_gpu = lambda count, **_: _needs(count)  # type: ignore[attr-defined]
    common.at_least_x_gpu = lambda count: count <= DEVICES
    common.requires_nccl = lambda: lambda test: test
    common.requires_accelerator_dist_backend = lambda backends=None: lambda test: test
    common_cuda.TEST_MULTIGPU = DEVICES > 1
    common.nccl_skip_if_lt_x_gpu = lambda backend, count: _needs(count)
    common_fsdp.DEVICE_TYPE = device
    common_fsdp.DEVICE_COUNT, common_dtensor.DEVICE_COUNT = RANKS, DEVICES
    common_fsdp.DISTRIBUTED_BACKEND = "ocl" if OURS else "gloo"
    common_dtensor.DTensorTestBase.init_pg = _on_its_device(common_dtensor.DTensorTestBase.init_pg)
    common_fsdp.TEST_XPU = OURS  # asked as ranks begin, to choose their device
    common_dtensor.DTensorTestBase.backend = property(  # of the names that its init_pg takes
        lambda self: "cpu:gloo,ocl:ocl" if self.device_type == "ocl" else "gloo"
    )


if OURS:
    _serve_all("ocl")
elif "JUDGED_ON_CPU" in os.environ:
    torch.accelerator.current_accelerator = lambda check_available=False: torch.device("cpu")
    torch.accelerator.device_count = torch.cpu.device_count = lambda: DEVICES
    torch.accelerator.set_device_index = lambda device: None
    _serve_all("cpu")
