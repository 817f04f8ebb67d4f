"""Prints tensors of ``ocl`` from a copy on the CPU, if they are small enough to be printed whole.

PyTorch's printer reads one element after another, with a launch and a wait for each, and computes
in float64, which many GPUs do not have.
"""

from collections.abc import Callable

import torch
from torch import _tensor_str as printer

_NAME = "ocl"


def _lacks_float64(tensor: torch.Tensor) -> bool:
    return not torch.ocl.get_device_properties(tensor.device).has_fp64  # type: ignore[attr-defined]


def _text(original: Callable[..., str]) -> Callable[..., str]:
    def tensor_text(self: torch.Tensor, indent: int) -> str:
        if type(self) is torch.Tensor and self.device.type == _NAME:
            whole = self.numel() <= printer.PRINT_OPTS.threshold
            if whole or (self.dtype is torch.float64 and _lacks_float64(self)):
                self = self.cpu()
        return original(self, indent)

    return tensor_text


def _widest(
    original: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[torch.Tensor], torch.Tensor]:
    def as_widest(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == _NAME and _lacks_float64(tensor):
            return tensor.to(dtype=torch.float)
        return original(tensor)

    return as_widest


def install() -> None:
    """Replaces PyTorch's functions; to be called once per process."""
    printer._tensor_str = _text(printer._tensor_str)  # type: ignore[assignment]
    printer.tensor_totype = _widest(printer.tensor_totype)  # type: ignore[assignment]
