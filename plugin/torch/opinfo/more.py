"""Calls of operators that op_db leaves out, for recorded.py: each makes its arguments on the device
and returns what is to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Call = Callable[[], Any]
GROUPED = getattr(torch.nn.functional, "grouped_mm", torch._grouped_mm)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="ocl", dtype=dtype).requires_grad_()


def with_gradients(forward: Call, leaves: list[torch.Tensor]) -> Call:
    gradient = torch.ones_like(forward())
    return lambda: torch.autograd.grad(forward(), leaves, gradient)


def products(forms: str, dtype: torch.dtype) -> Callable[[], tuple[Call, list[torch.Tensor]]]:
    """Grouped products of two operands with two or three dimensions."""

    def make() -> tuple[Call, list[torch.Tensor]]:
        ends = torch.tensor([8, 8, 24, 40], dtype=torch.int32, device="ocl")
        a, b = {
            "2d-3d": lambda: (numbers(40, 16, dtype=dtype), numbers(4, 16, 32, dtype=dtype)),
            "3d-2d": lambda: (numbers(4, 16, 32, dtype=dtype), numbers(32, 40, dtype=dtype)),
            "2d-2d": lambda: (numbers(16, 40, dtype=dtype), numbers(40, 32, dtype=dtype)),
            "3d-3d": lambda: (numbers(4, 16, 32, dtype=dtype), numbers(4, 32, 24, dtype=dtype)),
        }[forms]()
        offs = None if forms == "3d-3d" else ends
        return lambda: GROUPED(a, b, offs=offs), [a, b]

    return make


def constructors() -> dict[str, Call]:
    on = {"device": "ocl"}
    return {
        "tril_indices": lambda: torch.tril_indices(5, 7, 1, **on),
        "triu_indices": lambda: torch.triu_indices(5, 7, -1, **on),
        "kaiser_window": lambda: torch.kaiser_window(12, **on),
        "hann_window": lambda: torch.hann_window(12, **on),
        "hamming_window": lambda: torch.hamming_window(12, **on),
        "blackman_window": lambda: torch.blackman_window(12, **on),
        "bartlett_window": lambda: torch.bartlett_window(12, **on),
        "fft.fftfreq": lambda: torch.fft.fftfreq(9, **on),
        "fft.rfftfreq": lambda: torch.fft.rfftfreq(9, **on),
        "vander": lambda: torch.vander(torch.arange(4.0, **on)),
        "scalar_tensor": lambda: torch.scalar_tensor(3.5, **on),
        "full": lambda: torch.full((3, 4), 2.5, **on),
        "eye": lambda: torch.eye(4, 6, **on),
        "logspace": lambda: torch.logspace(0, 2, 9, **on),
        "cartesian_prod": lambda: torch.cartesian_prod(torch.arange(3, **on), torch.ones(2, **on)),
        "combinations": lambda: torch.combinations(torch.arange(5, **on), 2),
    }


def layers() -> dict[str, Callable[[], tuple[Call, list[torch.Tensor]]]]:
    """Modules that are composed of several operators, in training."""
    nn = torch.nn

    def of(module: nn.Module, *shapes: tuple[int, ...]) -> Callable[[], Any]:
        def make() -> tuple[Call, list[torch.Tensor]]:
            here = module.to("ocl")
            given = [numbers(*shape) for shape in shapes]

            def forward() -> torch.Tensor:
                result = here(*given)
                return result[0] if isinstance(result, tuple) else result

            return forward, [*given, *here.parameters()]

        return make

    encoder = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return {
        "LSTM": of(nn.LSTM(5, 6, 2), (4, 3, 5)),
        "GRU": of(nn.GRU(5, 6), (4, 3, 5)),
        "MultiheadAttention": of(nn.MultiheadAttention(16, 4), (4, 3, 16), (4, 3, 16), (4, 3, 16)),
        "TransformerEncoderLayer": of(encoder, (2, 5, 16)),
        "BatchNorm2d": of(nn.BatchNorm2d(3), (2, 3, 5, 5)),
        "LPPool2d": of(nn.LPPool2d(2, 3), (2, 3, 9, 9)),
        "CrossMapLRN2d": of(nn.CrossMapLRN2d(3), (2, 7, 5, 5)),
        "AdaptiveMaxPool3d": of(nn.AdaptiveMaxPool3d(3), (3, 7, 8, 9)),
        "AvgPool3d of one sample": of(nn.AvgPool3d(3, 2, 1), (3, 7, 8, 9)),
        "Fold of one sample": of(nn.Fold((6, 7), 3), (18, 20)),
        "ReplicationPad3d": of(nn.ReplicationPad3d(1), (2, 3, 4, 5, 6)),
        "PixelShuffle": of(nn.PixelShuffle(2), (2, 8, 3, 3)),
    }


def more_calls(backward: bool) -> dict[str, Callable[[], Call]]:
    """Makers of calls by name; with `backward`: of calls with their gradients."""
    made: dict[str, Callable[[], tuple[Call, list[torch.Tensor]]]] = {}
    for forms in ("2d-3d", "3d-2d", "2d-2d", "3d-3d"):
        for dtype in (torch.float32, torch.bfloat16):
            made[f"grouped_mm {forms} {str(dtype)[6:]}"] = products(forms, dtype)
    made.update(layers())
    if backward:
        return {name: lambda make=make: with_gradients(*make()) for name, make in made.items()}
    plain = {name: lambda call=call: call for name, call in constructors().items()}
    return plain | {name: lambda make=make: make()[0] for name, make in made.items()}
