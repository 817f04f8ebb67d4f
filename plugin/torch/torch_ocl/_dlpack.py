"""Makes DLPack's protocol work for tensors on ocl: ``torch.from_dlpack(x)``, ``x.__dlpack__()``.

PyTorch exports and imports memory of out-of-tree devices as kDLExtDev, but its two methods know no
name such as "ocl". DLPack's kDLOpenCL is not the type: it means a cl_mem in place of an address.
To CUDA's libraries memory is exported as theirs where they see it (``sharing``).
"""

import functools
import importlib
from typing import Any

import torch

from torch_ocl import sharing

EXPORTED = (
    "ocl: tensors on ocl are exported to ocl devices, which are DLPack's kDLExtDev (12), or copied "
    "to the CPU, dl_device=(1, 0); got {}"
)


def install() -> None:
    """Replaces torch.Tensor's two methods; what they do for tensors of other devices stays."""
    types = importlib.import_module("torch.utils.dlpack").DLDeviceType
    device_of, export = torch.Tensor.__dlpack_device__, torch.Tensor.__dlpack__

    def is_ours(tensor: torch.Tensor) -> bool:
        # Subclasses with functions of their own come back here after these.
        own = torch.overrides.has_torch_function_unary(tensor)
        return not own and tensor.device.type == "ocl"

    @functools.wraps(device_of)
    def __dlpack_device__(self: torch.Tensor) -> Any:
        return (types.kDLExtDev, self.device.index) if is_ours(self) else device_of(self)

    def to_cuda(tensor: torch.Tensor, number: int, kwargs: dict[str, Any]) -> Any:
        others = {name: value for name, value in kwargs.items() if name != "dl_device"}
        try:
            return sharing.export(tensor, number, export, **others)
        except NotImplementedError as error:  # no shared memory
            text = EXPORTED.format((int(types.kDLCUDA), number))
            raise BufferError(f"{text}: {error}") from None

    @functools.wraps(export)
    def __dlpack__(self: torch.Tensor, **kwargs: Any) -> Any:
        device = kwargs.get("dl_device")
        if device is not None and is_ours(self):
            kind, index = device
            if kind == types.kDLCUDA:
                return to_cuda(self, index, kwargs)
            if kind not in (types.kDLExtDev, types.kDLCPU):
                raise BufferError(EXPORTED.format(tuple(map(int, device))))
            if kind == types.kDLExtDev and index >= torch.ocl.device_count():
                raise BufferError(EXPORTED.format(tuple(map(int, device))))
        return export(self, **kwargs)

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]
    torch.Tensor.__dlpack__ = __dlpack__  # type: ignore[method-assign]
