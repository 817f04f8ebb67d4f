"""bitsandbytes: ocl among its devices; products with weights of 4 bits, which kernels read as they
are; 8-bit optimizers; helpers without torch.compile; exact products of bytes. Its other operators
are made of PyTorch's own on devices that have no kernels of theirs, ocl among them."""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from torch_ocl.integrations._patch import Patch, module

# Compiled by Inductor, with the functions themselves in reserve. Inductor refuses ocl, at the cost
# of one trace for each shape.
COMPILED = (
    "_dequantize_blockwise_compute",
    "_dequantize_4bit_compute",
    "_optimizer_precondition_32bit",
    "_optimizer_update_32bit",
)


def _as_written(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Calls the function itself for tensors of ocl."""
    written = getattr(compiled, "__wrapped__", compiled)

    def call(first: torch.Tensor, *others: Any, **named: Any) -> Any:
        return (written if first.device.type == "ocl" else compiled)(first, *others, **named)

    return call


def _product_of_bytes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a`` of shape [..., K], ``b`` [N, K]: int32 sums [..., N]."""
    sums = torch._int_mm(a.reshape(-1, a.shape[-1]), b.t())
    return sums.view(*a.shape[:-1], b.shape[0])


def _write_product_of_bytes(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(_product_of_bytes(a, b))


def _once(of: torch.Tensor, cache: WeakIdKeyDictionary, make: Callable[[], Any]) -> Any:
    """What ``make`` makes of a tensor, as long as this lives and is not written to."""
    if of.is_inference():  # has no count of writes
        return make()
    known = cache.get(of)
    if known is None or known[0] != of._version:
        known = cache[of] = (of._version, make())
    return known[1]


_kinds, _scales = WeakIdKeyDictionary(), WeakIdKeyDictionary()


def _kind_of(code: torch.Tensor) -> str:
    """Which of the two codes it is: its second number waits for the device, once."""
    return _once(code, _kinds, lambda: "fp4" if code[1].item() > 0 else "nf4")


def _scales_of(
    absmax: torch.Tensor, bits: torch.Tensor | None, code: Any, offset: Any
) -> torch.Tensor:
    """A float for each block. Nested ones, of 8 bits, are unpacked once: in blocks of 64 that is an
    eighth of the weight's bytes more."""
    if bits is None:
        return absmax
    unpack = torch.ops.bitsandbytes.dequantize_blockwise
    return _once(
        bits, _scales, lambda: (unpack(bits, absmax, code, 256, torch.float32) + offset).view(-1)
    )


def _gemm_4bit(
    a: torch.Tensor,
    b: torch.Tensor,
    shape: Sequence[int],
    absmax: torch.Tensor,
    block: int,
    kind: str,
    bias: torch.Tensor | None = None,
    absmax_8bit: torch.Tensor | None = None,
    absmax_code: torch.Tensor | None = None,
    absmax_offset: torch.Tensor | None = None,
) -> torch.Tensor:
    scales = _scales_of(absmax, absmax_8bit, absmax_code, absmax_offset)
    return torch.ops.ocl.quantised_mm(a, b, scales, None, bias, kind, shape[0], block)


def _gemv_4bit(
    a: torch.Tensor,
    b: torch.Tensor,
    shape: Sequence[int],
    absmax: torch.Tensor,
    code: torch.Tensor,
    block: int,
) -> torch.Tensor:
    return torch.ops.ocl.quantised_mm(a, b, absmax, None, None, _kind_of(code), shape[0], block)


def _write_gemv_4bit(*args: Any) -> None:
    *given, out = args
    out.copy_(_gemv_4bit(*given))


def _dequantize_4bit(
    a: torch.Tensor,
    absmax: torch.Tensor,
    block: int,
    kind: str,
    shape: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    size = [math.prod(shape[:-1]), shape[-1]]
    return torch.ops.ocl.dequantise(a, absmax, None, None, kind, size, dtype, block).view(shape)


def _write_dequantize_4bit(*args: Any) -> None:
    *given, out = args
    out.copy_(_dequantize_4bit(*given))


FOUR_BITS = {
    "gemm_4bit": _gemm_4bit,
    "gemv_4bit": _gemv_4bit,
    "gemv_4bit.out": _write_gemv_4bit,
    "dequantize_4bit": _dequantize_4bit,
    "dequantize_4bit.out": _write_dequantize_4bit,
}


def bitsandbytes(library: ModuleType, patch: Patch) -> None:
    """Changes the whole library, when ``import bitsandbytes`` ends."""
    # transformers refuses quantised models where no device of this set is there.
    patch.set(library, "supported_torch_devices", library.supported_torch_devices | {"ocl"})
    for name in COMPILED:
        patch.replace(module("bitsandbytes.backends.default.ops"), name, _as_written)
    # The one operator without a form for any device. That for the CPU asks for nothing of a CPU.
    update = module("bitsandbytes.backends.cpu.ops")._optimizer_update_8bit_blockwise_cpu
    kernels = torch.library.Library("bitsandbytes", "IMPL")
    patch.on_undo(kernels._destroy)
    kernels.impl("optimizer_update_8bit_blockwise", update, "PrivateUse1")
    # That for any device adds the products of bytes as floats, which rounds sums above 2^24.
    kernels.impl("int8_linear_matmul", _product_of_bytes, "PrivateUse1")
    kernels.impl("int8_linear_matmul.out", _write_product_of_bytes, "PrivateUse1")
    for name, kernel in FOUR_BITS.items():
        kernels.impl(name, kernel, "PrivateUse1")


APPLY = {"bitsandbytes": bitsandbytes}
