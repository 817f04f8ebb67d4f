"""Adapts parts of PyTorch that know CUDA only: they work on ocl, or say in an error what to do.

These parts check device types by name, or have code for CUDA alone. Without this file they end in
an AttributeError or a text about other devices. Their behaviour on other devices does not change.
"""

import functools
import importlib
import multiprocessing.reduction
from collections.abc import Callable, Sequence
from typing import Any

import torch

SHARING = (
    "ocl: a tensor on ocl cannot be sent to another process: its memory belongs to this one. Send "
    "tensor.cpu(), and move it to the device there with .to('ocl')"
)
PARALLEL = (
    "ocl: torch.nn.DataParallel and torch.nn.parallel.comm do not work over several ocl devices "
    "yet: give one (device_ids=[0]), or call the module itself"
)


def install() -> None:
    """Installs all replacements, once per process."""
    _refuse_sharing()
    _data_parallel()
    _allow_flex_attention()
    _promise_fourier_transforms()


def _on_ocl(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "ocl"
    return isinstance(value, (list, tuple)) and any(map(_on_ocl, value))


def _refuse_sharing() -> None:
    """Replaces the function by which torch.multiprocessing sends tensors to other processes."""
    pickler = multiprocessing.reduction.ForkingPickler
    known = pickler._extra_reducers  # type: ignore[attr-defined]
    reduce = known.get(torch.UntypedStorage)
    if reduce is None:  # a platform without shared memory
        return

    @functools.wraps(reduce)
    def reduce_storage(storage: torch.UntypedStorage) -> Any:
        if storage.device.type == "ocl":
            raise NotImplementedError(SHARING)
        return reduce(storage)

    pickler.register(torch.UntypedStorage, reduce_storage)


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


def _promise_fourier_transforms() -> None:
    """Makes fake results of Fourier transforms contiguous, as on ocl; by default they have the
    strides of the CPU's results."""
    aten = torch.ops.aten
    try:
        fakes = importlib.import_module("torch._subclasses.fake_impls")
        promises = fakes.op_implementations_dict
    except (ImportError, AttributeError):  # private names, which a torch version may lack
        return

    def size_of(name: str, self: torch.Tensor, dim: Sequence[int], last: Any) -> list:
        sizes = list(self.shape)
        if name == "_fft_r2c" and last:
            sizes[dim[-1]] = sizes[dim[-1]] // 2 + 1
        if name == "_fft_c2r":
            sizes[dim[-1]] = last
        return sizes

    def promise(name: str) -> None:
        operator = getattr(aten, name).default
        before = promises.get(operator)

        def fake(mode: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
            device = getattr(args[0], "fake_device", None)
            if device is None or device.type != "ocl" or kwargs or len(args) != 4 or not args[1]:
                return NotImplemented if before is None else before(mode, function, *args, **kwargs)
            self, dim, _, last = args
            turned = self.dtype.to_real() if name == "_fft_c2r" else self.dtype.to_complex()
            with mode:
                return torch.empty(size_of(name, self, dim, last), dtype=turned, device=device)

        promises[operator] = fake

    for name in ("_fft_c2c", "_fft_r2c", "_fft_c2r"):
        promise(name)
