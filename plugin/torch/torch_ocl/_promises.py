"""What PyTorch's fake tensors promise of results on ocl, where it is not what they promise of other
devices: strides that tracers believe and compiled code asserts.

The plugin's operators have their rules in a column of its operator table, which ``_C.layouts()``
gives; PyTorch's own meta functions know all of them but those of convolutions. Operators that the
adapter composes are named here.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_ocl import _C

# Rules of the table for which PyTorch promises something else, with the position of the input that
# decides together with the weight behind it.
CONVOLUTIONS = {"FormatOfConvolution": 0, "FormatOfConvolutionBackward": 1}


def install() -> None:
    """Makes the promises, once per process."""
    try:
        promises = importlib.import_module("torch._subclasses.fake_impls").op_implementations_dict
        suggested = importlib.import_module("torch._prims_common").suggest_memory_format
    except (ImportError, AttributeError):  # private names, which a torch version may lack
        return
    _promise_fourier_transforms(promises)
    _promise_channels_last(promises, suggested)


def _promise_fourier_transforms(promises: dict[Any, Callable]) -> None:
    """Makes fake results of Fourier transforms contiguous, as on ocl; by default they have the
    strides of the CPU's results."""
    aten = torch.ops.aten

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


def _promise_channels_last(promises: dict[Any, Callable], suggested: Callable) -> None:
    """Makes fake results channels_last where those on ocl are: those of convolutions where the
    input or the weight is; those of pixel_shuffle, padding (before 2.13) and its gradients where
    the input is. By default they are contiguous on devices that PyTorch does not know."""
    aten = torch.ops.aten

    def format_of(*operands: Any) -> torch.memory_format | None:
        """The first operand's that is channels_last; None also for other devices."""
        if getattr(operands[0], "fake_device", operands[0].device).type != "ocl":
            return None
        formats = (torch.channels_last, torch.channels_last_3d)
        return next((f for f in map(suggested, operands) if f in formats), None)

    def convolution(operator: Any, first: int) -> None:
        before = promises.get(operator)
        if before is None:
            return

        def fake(mode: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
            result = before(mode, function, *args, **kwargs)
            positional = zip(("input", "weight"), args[first : first + 2], strict=False)
            given = {**dict(positional), **kwargs}
            found = format_of(given["input"], given["weight"])

            def laid_out(out: Any) -> Any:
                if out is None or found is None or out.dim() != given["input"].dim():
                    return out
                with mode:
                    return torch.empty_like(out, memory_format=found)

            return tuple(map(laid_out, result)) if first else laid_out(result)

        promises[operator] = fake

    def pixel_shuffle(mode: Any, _: Any, self: torch.Tensor, upscale_factor: int) -> Any:
        found = format_of(self)
        if found is None or self.dim() != 4:
            return NotImplemented
        n, c, h, w = self.shape
        sizes = (n, c // upscale_factor**2, h * upscale_factor, w * upscale_factor)
        with mode:
            return self.new_empty(sizes).to(memory_format=found)

    def pad(mode: Any, _: Any, self: torch.Tensor, padding: Sequence[int]) -> Any:
        found = format_of(self)
        if found is None or self.dim() != 4 or len(padding) != 4:
            return NotImplemented
        n, c, h, w = self.shape
        left, right, top, bottom = padding
        with mode:
            sizes = (n, c, h + top + bottom, w + left + right)
            return self.new_empty(sizes).to(memory_format=found)

    def pad_backward(mode: Any, _: Any, grad: torch.Tensor, self: torch.Tensor, *rest: Any) -> Any:
        found = format_of(self)
        if found is None or self.dim() != 4:
            return NotImplemented
        with mode:
            return torch.empty_like(self, memory_format=found)

    for name, rule in _C.layouts():
        if rule in CONVOLUTIONS:
            convolution(getattr(aten, name.removesuffix(".out")).default, CONVOLUTIONS[rule])
    promises.setdefault(aten.pixel_shuffle.default, pixel_shuffle)
    for operator in (aten.reflection_pad2d_backward, aten.replication_pad2d_backward):
        promises.setdefault(operator.default, pad_backward)
    if torch.__version__ < (2, 13):
        for operator in (aten.reflection_pad2d, aten.replication_pad2d):
            promises.setdefault(operator.default, pad)
