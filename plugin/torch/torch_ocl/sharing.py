"""Tensors on ocl that CUDA's libraries see without a copy, and theirs on ocl.

It needs ``OCLTENSOR_SHARED_MEMORY=1`` from the process's start, and an NVIDIA device. Both sides
then have one memory, and nothing orders their work: this module waits on the host whenever a tensor
changes sides; whoever goes on using both sides waits for the one (``torch.ocl.synchronize()``,
``torch.cuda.synchronize()``) before the other reads.

>>> c = cupy.from_dlpack(torch.ocl.cuda_view(x))
>>> t = torch.from_dlpack(torch.ocl.cuda_view(x))  # on cuda, with a CUDA build of torch
>>> y = torch.ocl.from_cuda(c)
"""

import importlib
from typing import Any

import torch

from torch_ocl import _C

__all__ = ["CudaView", "cuda_view", "from_cuda"]

_NO_ORDER = -1  # DLPack's stream without an order: the host waits instead


def _types() -> Any:
    return importlib.import_module("torch.utils.dlpack").DLDeviceType


class CudaView:
    """What DLPack's ``from_dlpack`` of a library takes for a tensor of CUDA."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._number = _C.cuda_number(tensor.device.index)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return (_types().kDLCUDA, self._number)

    def __dlpack__(self, **kwargs: Any) -> Any:
        kwargs.setdefault("dl_device", self.__dlpack_device__())
        return self._tensor.__dlpack__(**kwargs)


def cuda_view(tensor: torch.Tensor) -> CudaView:
    """The tensor for a library of CUDA, without a copy: an argument of its ``from_dlpack``.

    NotImplementedError, with the reason, where the device shares no memory.
    """
    if tensor.device.type != "ocl":
        raise ValueError(f"ocl: cuda_view takes tensors on ocl, not on {tensor.device}")
    return CudaView(tensor)


def from_cuda(
    array: Any, device: torch.device | str | int | None = None, copy: bool | None = None
) -> torch.Tensor:
    """A library's array on CUDA as a tensor on ocl.

    Args:
        array: has DLPack's ``__dlpack__`` and lies on CUDA, such as CuPy's and PyTorch's.
        device: the ocl device that is the same one; by default the current one.
        copy: True: always copies, on the device. False: never, and a RuntimeError says why where
            the memory was not made to be exported. None: only where it must.
    """
    types = _types()
    kind, _ = array.__dlpack_device__()
    if kind != types.kDLCUDA:
        raise ValueError(f"ocl: from_cuda takes arrays on CUDA, got DLPack's device type {kind}")
    chosen = (
        torch.device("ocl", device) if isinstance(device, int) else torch.device(device or "ocl")
    )
    index = torch.ocl.current_device() if chosen.index is None else chosen.index
    return _C.tensor_from_cuda(array.__dlpack__(stream=_NO_ORDER), index, copy)


def export(tensor: torch.Tensor, number: int, make: Any, **kwargs: Any) -> Any:
    """The capsule of a tensor on ocl as one of CUDA's device ``number``; ``make`` makes ocl's."""
    own = _C.cuda_number(tensor.device.index)
    if own != number:
        raise BufferError(f"ocl: {tensor.device} is CUDA's device {own}, not {number}")
    kwargs.pop("stream", None)
    capsule = make(tensor, **kwargs)
    torch.ocl.synchronize(tensor.device)
    _C.capsule_to_cuda(capsule)
    return capsule
