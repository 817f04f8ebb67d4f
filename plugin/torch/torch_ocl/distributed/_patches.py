"""Where torch.distributed goes by a backend's name instead of its abilities: patches for ``ocl``.

Each says which versions of torch it is for, why, and what upstream knows of it. They change nothing
for groups and tensors of other devices.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def install() -> None:
    """Installs all patches, once per process."""
    _default_backend()
    _gloo_of_ocl()
    _bfloat16_hooks()
    _time_limits()


def _default_backend() -> None:
    """``init_process_group()`` without a name means ``ocl``, for CPU tensors, too.

    All versions: without a name PyTorch makes a backend for the accelerator alone, and up to 2.13
    it notes Gloo as the group's default type, for which DistributedDataParallel then asks in vain
    ("Could not find backend type 1"; mended in 2.14). Where a plugin is registered, groups of named
    devices ("cpu:gloo") have no default type at all, because PyTorch compares the plugin's name in
    capitals with theirs: Python then warns of a "backend of type 0".
    """
    types = dist.ProcessGroup.BackendType
    old = c10d._new_process_group_helper

    @functools.wraps(old)
    def _new_process_group_helper(
        group_size: int, group_rank: int, ranks: list[int], backend: str, *args: Any, **kwargs: Any
    ) -> Any:
        if backend == dist.Backend.UNDEFINED and torch._C._get_accelerator().type == "ocl":
            backend = dist.Backend("ocl")
        if "ocl" in str(backend):
            importlib.import_module("torch_ocl.distributed").choose_device()
        made = old(group_size, group_rank, ranks, backend, *args, **kwargs)
        if isinstance(made[0], dist.ProcessGroup) and ":" in str(backend):
            names = c10d.BackendConfig(backend).device_backend_map.values()
            if "ocl" in names:
                made[0]._set_default_backend(types.CUSTOM)
            elif "gloo" in names and "nccl" not in names:
                made[0]._set_default_backend(types.GLOO)
        return made

    c10d._new_process_group_helper = _new_process_group_helper


def _gloo_of_ocl() -> None:
    """A group of Gloo has the backend ``ocl`` for tensors on ocl, and its own for the CPU's.

    All versions: ProcessGroupGloo takes tensors of the CPU and of CUDA alone (pytorch issue 184010,
    open).
    """

    def devices(old: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        @functools.wraps(old)
        def __init__(self: Any, backend: Any) -> None:
            old(self, backend)
            backends = self.device_backend_map
            if str(backend).lower() == "gloo":
                # Not one for CUDA, too: backends that differ are made one for each device.
                if not torch.cuda.is_available():
                    backends.pop("cuda", None)
                backends["ocl"] = dist.Backend("ocl")
            elif backends.get("ocl") == "gloo":
                backends["ocl"] = dist.Backend("ocl")

        return __init__

    c10d.BackendConfig.__init__ = devices(c10d.BackendConfig.__init__)


def _bfloat16_hooks() -> None:
    """DistributedDataParallel's ``bf16_compress_hook`` on ocl.

    All versions: it is refused by the hook's name unless torch has NCCL or XCCL ("BF16 all reduce
    communication hook required CUDA 11+ and NCCL 2.10+"); no issue is known.
    """
    cls = torch.nn.parallel.DistributedDataParallel
    old = cls._check_comm_hook

    @functools.wraps(old)
    def _check_comm_hook(self: Any, hook: Callable[..., Any]) -> None:
        if self.device_type == "ocl" and callable(hook):
            hook = _renamed(hook)
        old(self, hook)

    cls._check_comm_hook = _check_comm_hook  # type: ignore[method-assign]


def _renamed(hook: Callable[..., Any]) -> Callable[..., Any]:
    """The same function by another name."""

    @functools.wraps(hook)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs)

    renamed.__name__ = "renamed"
    return renamed


def _time_limits() -> None:
    """``_set_pg_timeout`` of groups with the backend ``ocl``.

    All versions: it knows the classes of Gloo and NCCL, and warns for others; no issue is known.
    """
    old = c10d._set_pg_timeout

    @functools.wraps(old)
    def _set_pg_timeout(timeout: Any, group: dist.ProcessGroup | None = None) -> None:
        chosen = group if group is not None else c10d._get_default_group()
        kinds = {device.type for device in chosen._device_types}
        backends = [chosen._get_backend(torch.device(kind)) for kind in kinds]
        ours = [backend for backend in backends if backend.name() == "ocl"]
        for backend in ours:
            backend.set_timeout(timeout)
        if len(ours) < len(backends):
            old(timeout, group)

    c10d._set_pg_timeout = _set_pg_timeout
