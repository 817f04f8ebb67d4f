"""Engines: what carries bytes between ranks. A new one is a row of ``ENGINES``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from torch_ocl import _C
from torch_ocl.distributed import _mpi, _nccl

SETTING = "OCLTENSOR_DISTRIBUTED_ENGINE"


@dataclass(frozen=True)
class Engine:
    """What ``ocl`` works over: a backend of torch.distributed for tensors of the CPU, or an object
    with the functions of ``csrc/distributed/engine.h``."""

    name: str
    is_available: Callable[[], bool]
    is_preferred: Callable[[], bool]  # where it is available; must not open a device
    # Of c10d's DistributedBackendOptions: store, group_rank, group_size, timeout, ...
    make: Callable[[Any], Any]
    need: str  # what it takes to be available
    # NCCL's file, for tensors on ocl; what `make` makes is then for all else.
    library: Callable[[], str] | None = None


def _gloo(options: Any) -> Any:
    store = dist.PrefixStore("gloo/", options.store)
    group = dist.ProcessGroupGloo(
        store, options.group_rank, options.group_size, timeout=options.timeout
    )
    group._set_sequence_number_for_group()
    return group


# In the order of preference.
ENGINES = (
    Engine("mpi", _mpi.is_installed, _mpi.is_launched, _mpi.make, "pip install 'torch_ocl[mpi]'"),
    Engine("nccl", _nccl.is_available, lambda: False, _gloo, _nccl.NEED, _nccl.library),
    Engine("gloo", dist.is_gloo_available, lambda: True, _gloo, "a torch that was built with it"),
)


def choose() -> Engine:
    """The engine that the setting names, else the first that is preferred here."""
    wanted = _C.get_setting(SETTING)
    for engine in ENGINES:
        if engine.name == wanted if wanted else engine.is_preferred() and engine.is_available():
            if not engine.is_available():
                raise RuntimeError(f"ocl: {SETTING}={wanted} needs {engine.need}")
            return engine
    needs = ", or ".join(f"{engine.name} ({engine.need})" for engine in ENGINES)
    raise RuntimeError(f"ocl: torch.distributed needs an engine: {needs}")
