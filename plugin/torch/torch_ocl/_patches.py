"""Adapts parts of PyTorch that know CUDA only: they work on ocl, or say in an error what to do.

These parts check device types by name, or have code for CUDA alone. Without this file they end in
an AttributeError or a text about other devices. Their behaviour on other devices does not change.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_ocl import _compile, _processes, _promises, _random_states

PARALLEL = (
    "ocl: torch.nn.DataParallel and torch.nn.parallel.comm do not work over several ocl devices "
    "yet: give one (device_ids=[0]), or call the module itself"
)


def install() -> None:
    """Installs all replacements, once per process."""
    _processes.install()
    _data_parallel()
    _allow_flex_attention()
    _compile.install()
    _promises.install()
    _random_states.install()
    _multiply_bytes()
    _register_collectives()


def _on_ocl(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "ocl"
    return isinstance(value, (list, tuple)) and any(map(_on_ocl, value))


def _data_parallel() -> None:
    """Makes DataParallel work on one device; the code for several is in CUDA builds only."""
    comm = importlib.import_module("torch.nn.parallel.comm")

    def only(function: Callable) -> Callable:
        @functools.wraps(function)
        def on_other_devices(*args: Any, **kwargs: Any) -> Any:
            if _on_ocl([*args, *kwargs.values()]):
                raise NotImplementedError(PARALLEL)
            return function(*args, **kwargs)

        return on_other_devices

    names = ("broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced")
    for name in names:
        setattr(comm, name, only(getattr(comm, name)))
    scatter, gather = comm.scatter, only(comm.gather)

    @functools.wraps(scatter)
    def scatter_to_one(
        tensor: torch.Tensor, devices: Sequence | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        # `devices` are indices of the accelerator that DataParallel has chosen.
        if not _on_ocl(tensor) and (torch.cuda.is_available() or tensor.device.type != "cpu"):
            return scatter(tensor, devices, *args, **kwargs)
        if devices is None or len(devices) != 1:
            raise NotImplementedError(PARALLEL)
        place = devices[0]
        return (tensor.to(torch.device("ocl", place) if isinstance(place, int) else place),)

    @functools.wraps(gather)
    def gather_from_one(
        tensors: Sequence[torch.Tensor], dim: int = 0, destination: Any = None, **kwargs: Any
    ) -> Any:
        tensors = tuple(tensors)
        if len(tensors) != 1 or not _on_ocl(tensors[0]) or kwargs:
            return gather(tensors, dim, destination, **kwargs)
        if destination is None or isinstance(destination, int):
            return tensors[0].to(torch.device("cpu" if destination == -1 else tensors[0].device))
        return tensors[0].to(destination)

    comm.scatter, comm.gather = scatter_to_one, gather_from_one  # type: ignore[attr-defined]


def _allow_flex_attention() -> None:
    """Permits flex_attention on ocl: without Inductor it calls operators that every device has."""
    try:
        flex = importlib.import_module("torch.nn.attention.flex_attention")
        validate = flex._validate_device
    except (ImportError, AttributeError):  # private names, which a torch version may lack
        return

    @functools.wraps(validate)
    def validate_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != "ocl":
            validate(query, key, value)

    flex._validate_device = validate_device  # type: ignore[attr-defined]


def _multiply_bytes() -> None:
    """``out_dtype(mm, int32)`` of int8 is ``_int_mm``; by default it multiplies copies of int32."""
    try:
        library = importlib.import_module("torch._higher_order_ops.out_dtype")
        out_dtype, fallback = library.out_dtype, library.out_dtype_fallback
        implement = out_dtype.py_impl(torch._C.DispatchKey.PrivateUse1)
    except (ImportError, AttributeError):  # private names, which a torch version may lack
        return

    def dense(op: Any, dtype: torch.dtype, *args: Any) -> torch.Tensor:
        is_bytes = all(isinstance(a, torch.Tensor) and a.dtype == torch.int8 for a in args)
        if op is torch.ops.aten.mm.default and dtype == torch.int32 and is_bytes:
            return torch._int_mm(*args)
        return fallback(op, dtype, *args)

    implement(dense)


def _register_collectives() -> None:
    """The backend ``ocl`` of torch.distributed, whose package is imported for the first group."""
    try:
        c10d = importlib.import_module("torch.distributed.distributed_c10d")
        backends, old = c10d.Backend, c10d._new_process_group_helper
    except (ImportError, AttributeError):  # a build without torch.distributed
        return

    def create_backend(*args: Any) -> Any:
        return importlib.import_module("torch_ocl.distributed").create_backend(*args)

    # A list: of a string, PyTorch takes each letter for a device (2.13). The CPU's default is Gloo.
    backends.register_backend("ocl", create_backend, extended_api=True, devices=["ocl", "cpu"])

    def rendezvous(*args: Any, **kwargs: Any) -> Any:
        return importlib.import_module("torch_ocl.distributed._mpi").rendezvous(*args, **kwargs)

    with contextlib.suppress(RuntimeError):  # somebody else's "mpi://"
        importlib.import_module("torch.distributed").register_rendezvous_handler("mpi", rendezvous)

    @functools.wraps(old)
    def _new_process_group_helper(*args: Any, **kwargs: Any) -> Any:
        c10d._new_process_group_helper = old
        importlib.import_module("torch_ocl.distributed").prepare()
        return c10d._new_process_group_helper(*args, **kwargs)

    c10d._new_process_group_helper = _new_process_group_helper
