"""Engines: what carries bytes between ranks. A new one is a row of ``ENGINES``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist


@dataclass(frozen=True)
class Engine:
    """A backend of torch.distributed for tensors of the CPU, over which ``ocl`` works."""

    name: str
    is_available: Callable[[], bool]
    # Of c10d's DistributedBackendOptions: store, group_rank, group_size, timeout, ...
    make: Callable[[Any], Any]


def _gloo(options: Any) -> Any:
    store = dist.PrefixStore("gloo/", options.store)
    group = dist.ProcessGroupGloo(
        store, options.group_rank, options.group_size, timeout=options.timeout
    )
    group._set_sequence_number_for_group()
    return group


# In the order of preference.
ENGINES = (Engine("gloo", dist.is_gloo_available, _gloo),)


def choose() -> Engine:
    """The first engine that this torch has."""
    for engine in ENGINES:
        if engine.is_available():
            return engine
    names = ", ".join(engine.name for engine in ENGINES)
    raise RuntimeError(f"ocl: torch.distributed needs one of {names}, and this torch has none")
