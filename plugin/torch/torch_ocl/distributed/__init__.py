"""The backend ``ocl`` of torch.distributed: collectives and messages of tensors on ocl and the CPU.

>>> torch.distributed.init_process_group()  # under torchrun; the same as "ocl"

Groups made with ``"ocl"``, ``"cpu:gloo,ocl:ocl"`` or ``"gloo"`` serve both kinds of tensors, too.
An engine carries the bytes (``_engines.py``); what PyTorch lacks for such a backend is in
``_patches.py``. Nothing imports this package before the first process group is made, or
``torch.ocl.distributed`` is asked for.
"""

import atexit
from typing import Any

import torch

from torch_ocl import _C, _launcher
from torch_ocl.distributed import _engines, _patches
from torch_ocl.distributed._summary import Calls, Summary, reset_summary, summary

__all__ = ["Calls", "Summary", "reset_summary", "summary"]

_is_prepared = False


def prepare() -> None:
    """Installs the patches, once per process; called before the first process group is made."""
    global _is_prepared
    if not _is_prepared:
        _is_prepared = True
        _patches.install()
        # Threads of the backend must not wait for other ranks while the interpreter ends.
        atexit.register(_C.end_distributed_groups)


def create_backend(options: Any, _: Any) -> Any:
    """The backend of one group, for ``torch.distributed.Backend.register_backend``."""
    engine = _engines.choose()
    library = engine.library() if engine.library is not None else None
    return _C.make_distributed_backend(
        engine.make(options),
        options.store,
        options.group_rank,
        options.group_size,
        options.group_id,
        options.timeout.total_seconds(),
        _copies,
        _patience,
        library,
    )


# Whether tensors are copied even where their memory could be mapped; for tests.
_copies = False
# After so many seconds a collective that waits for other ranks is a warning, once.
_patience = 10.0


def choose_device() -> None:
    """For ranks that have not chosen a device, where a host has fewer devices than ranks.

    Ranks share CPUs, whose driver has one device: scripts then say ``"ocl"``. PyTorch's meshes
    would choose device LOCAL_RANK, unless a device is initialised. RuntimeError where GPUs are too
    few.
    """
    rank, ranks = _launcher.place()
    count = torch.ocl.device_count()
    if ranks <= count or count == 0 or _C.is_initialized():
        return
    kinds = [_C.device_properties(index)["kind"] for index in range(count)]
    if any(kind != "cpu" for kind in kinds):
        raise RuntimeError(
            f"ocl: {ranks} ranks were started on this host, which has {count} ocl devices: start "
            "one for each device, or call torch.ocl.set_device(index) and torch.ocl.init() before "
            "the process group is made to share one"
        )
    if torch.ocl.current_device() == 0:
        torch.ocl.set_device(rank % count)
    torch.ocl.init()
