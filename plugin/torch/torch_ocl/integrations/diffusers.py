"""diffusers: no float64 on devices without it; group offloading waits for its first transfers;
weights of GGUF files are read as they are."""

from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations import _gguf
from torch_ocl.integrations._patch import Patch


def torch_utils(library: ModuleType, patch: Patch) -> None:
    """Adds ocl to the devices for which tables of float64 are made in float32."""
    devices = range(torch.ocl.device_count())
    if all(torch.ocl.get_device_properties(i).has_fp64 for i in devices):
        return
    names = library._FP64_UNSUPPORTED_DEVICES | {"ocl"}
    table = {**library._DTYPE_UNSUPPORTED_DEVICES, torch.float64: names}
    patch.set(library, "_FP64_UNSUPPORTED_DEVICES", names)
    patch.set(library, "_DTYPE_UNSUPPORTED_DEVICES", table)


def group_offloading(library: ModuleType, patch: Patch) -> None:
    """With ``use_stream`` a group that loads itself is computed with before its weights arrived."""

    def make(old: Any) -> Any:
        def onload_(self: Any) -> None:
            old(self)
            # Others were loaded ahead by the group before them, and waited for.
            if self.onload_self and self.stream is not None and self.onload_device.type == "ocl":
                torch.ocl.current_stream(self.onload_device).wait_stream(self.stream)

        return onload_

    patch.replace(library.ModuleGroup, "onload_", make)


def _multiply_gguf(layer: Any, x: torch.Tensor) -> torch.Tensor | None:
    """A GGUFLinear as one product, or None where diffusers' operators compute it."""
    weight, bias, dtype = layer.weight, layer.bias, layer.compute_dtype
    kind = _gguf.TYPES.get(getattr(weight, "quant_type", None))
    if kind is None or weight.device != x.device or weight.dim() != 2:
        return None
    if torch.is_autocast_enabled("ocl"):
        x = x.to(torch.get_autocast_dtype("ocl"))
    elif x.dtype != dtype:  # is an error, which is theirs
        return None
    if x.dtype not in _gguf.FLOATS or hasattr(bias, "quant_type"):
        return None
    wrong = x.dim() == 0 or x.shape[-1] != _gguf.columns_of(kind, weight.shape[1])
    return None if wrong else _gguf.multiply(x, weight.as_tensor(), kind, bias)


def quantizers_gguf(library: ModuleType, patch: Patch) -> None:
    """Layers and values of weights whose types have kernels. Of bfloat16 the bytes are the values;
    other types are unpacked by diffusers at each call."""

    def forward(old: Any) -> Any:
        def forward_native(self: Any, inputs: torch.Tensor) -> torch.Tensor:
            y = _multiply_gguf(self, inputs) if inputs.device.type == "ocl" else None
            return old(self, inputs) if y is None else y

        return forward_native

    def values(old: Any) -> Any:
        def dequantize_gguf_tensor(tensor: torch.Tensor) -> torch.Tensor:
            found = getattr(tensor, "quant_type", None)
            if found is None or tensor.device.type != "ocl":
                return old(tensor)
            if found.name == "BF16":
                return tensor.as_tensor().view(torch.bfloat16)
            kind = _gguf.TYPES.get(found)
            if kind is not None:
                return _gguf.values(tensor.as_tensor(), kind, torch.float16)
            _gguf.count_unpacked("diffusers", found.name)
            return old(tensor)

        return dequantize_gguf_tensor

    patch.replace(library.GGUFLinear, "forward_native", forward)
    patch.replace(library, "dequantize_gguf_tensor", values)


APPLY = {
    "diffusers.utils.torch_utils": torch_utils,
    "diffusers.hooks.group_offloading": group_offloading,
    "diffusers.quantizers.gguf.utils": quantizers_gguf,
}
