"""bitsandbytes: ocl among its devices; 8-bit optimizers; helpers without torch.compile; exact
products of bytes. Its other operators are made of PyTorch's own on devices that have no kernels
of theirs, ocl among them."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

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


APPLY = {"bitsandbytes": bitsandbytes}
