"""Registers ``ocl`` with PyTorch: its name, ``torch.ocl``, ``torch.backends.ocl``, methods."""

import atexit
import os
import sys

import torch

from torch_ocl import _adapter, _launcher, _missing

NAME = "ocl"


def register() -> None:
    """Loads the adapter and registers its modules, once per process.

    Raises ImportError if no adapter was built for this torch, or if another extension has
    registered the one out-of-tree device for which PyTorch has room.
    """
    if getattr(sys.modules.get("torch.ocl"), "_torch_ocl_registered", False):
        return
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", NAME):
        raise ImportError(
            f"PyTorch has room for one out-of-tree device, and '{taken}' has taken it: "
            f"ocl and {taken} do not fit into one process"
        )
    # PoCL up to 5 compiles a kernel again for each local and global size. The plugin's kernels gain
    # nothing from that, as they fix their local sizes. A value that the user has set is kept.
    os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")
    rank, ranks = _launcher.place()
    if "LOCAL_WORLD_SIZE" in os.environ:  # of this process's launcher, not of its parent's
        os.environ["OCLTENSOR_LOCAL_RANKS"] = str(ranks)
    _adapter.load()
    _missing.remove()
    from torch_ocl import _C, _dlpack, _patches, _printing, backends, integrations, ocl

    _C.prefer_cpu(rank)
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, ocl)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    torch.backends.ocl = backends  # type: ignore[attr-defined]
    sys.modules["torch.backends.ocl"] = backends
    _patches.install()
    _dlpack.install()
    _printing.install()
    # Runs before the interpreter ends: its threads still run, and drivers still work.
    atexit.register(_C.profiler_finish)
    atexit.register(_C.await_devices)
    atexit.register(_C.await_backward_threads)
    ocl._torch_ocl_registered = True  # type: ignore[attr-defined]
    integrations.install()
