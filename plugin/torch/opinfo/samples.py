"""Samples of op_db on a device: moved with their layout, called, compared with results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

# Results that depend on random draws or on uninitialised memory: only their shape and dtype can be
# compared.
UNPREDICTABLE = {
    "bernoulli",
    "cauchy",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "new_empty",
    "new_empty_strided",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.rrelu",
    "normal",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "svd_lowrank",
    "pca_lowrank",
    "uniform",
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
}
# Ten times the tolerance of torch.testing for the dtype: sums of other orders and other libms, both
# correctly rounded to a few ulp; OpInfo's own device overrides are of the same size.
TOLERANCE = {
    torch.float32: (1.3e-5, 1e-4),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (1.6e-1, 1e-2),
    torch.float64: (1e-6, 1e-6),
    torch.complex64: (1.3e-5, 1e-4),
    torch.complex128: (1e-6, 1e-6),
    torch.complex32: (1e-2, 1e-3),
}  # of the modulus


def copy_layout(value: torch.Tensor, device: str) -> torch.Tensor:
    """A copy on `device` with the same strides and offset in a storage of the same size."""
    if value.layout != torch.strided or value.is_conj() or value.is_neg():
        return value.detach().clone().to(device)
    count = value.untyped_storage().nbytes() // value.element_size()
    storage = value.detach().as_strided((count,), (1,), 0).clone().to(device)
    return storage.as_strided(value.shape, value.stride(), value.storage_offset())


def move(value: Any, device: str | torch.device) -> Any:
    """A sample's value with every tensor on `device`, as leaves of their own graph."""
    if isinstance(value, torch.Tensor):
        return copy_layout(value, device).requires_grad_(value.requires_grad)
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, dict):
        return {k: move(v, device) for k, v in value.items()}
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (list, tuple)):
        moved = [move(v, device) for v in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def compare(got: Any, want: Any, dtype: Any, predictable: bool) -> None:
    mine, theirs = tensors(got), tensors(want)
    assert len(mine) == len(theirs), f"{len(mine)} tensors instead of {len(theirs)}"
    if not theirs and predictable:
        assert got == want or (got != got and want != want), f"{got} instead of {want}"
    for a, b in zip(mine, theirs):
        rtol, atol = TOLERANCE.get(b.dtype, (0, 0))
        assert a.shape == b.shape and a.dtype == b.dtype, (
            f"{a.dtype} {tuple(a.shape)} instead of {b.dtype} {tuple(b.shape)}"
        )
        assert a.device.type == "ocl" or not predictable, f"the result is on {a.device}"
        if predictable:
            torch.testing.assert_close(
                a.detach().cpu(), b.detach(), rtol=rtol, atol=atol, equal_nan=True
            )


# Arguments that stay on the CPU: they are read when the call is made.
HOST_ARGUMENTS = {"tensor_split"}


WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def widen(value: Any) -> Any:
    """Tensors of the shorter floating types as float64, complex64 as complex128: for a reference
    better than torch's own kernels."""
    if isinstance(value, torch.Tensor):
        return (
            value.detach().to(WIDER[value.dtype]).requires_grad_(value.requires_grad)
            if value.dtype in WIDER
            else value
        )
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    if isinstance(value, dict):
        return {k: widen(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return (
            type(value)(*map(widen, value))
            if hasattr(value, "_fields")
            else type(value)(map(widen, value))
        )
    return value


def call(
    op: OpInfo,
    sample: SampleInput,
    device: str,
    grad: bool,
    convert: Callable[[Any], Any] = lambda value: value,
) -> Any:
    torch.manual_seed(1)
    args = convert(
        move((sample.input,), device)
        + move(tuple(sample.args), "cpu" if op.name in HOST_ARGUMENTS else device)
    )
    kwargs = convert(move(sample.kwargs, device))
    if "device" in kwargs:
        kwargs["device"] = device
    with torch.device(device):  # constructors that name no device
        out = op(*args, **kwargs)
    if not grad:
        return out
    out = sample.output_process_fn_grad(out) if sample.output_process_fn_grad is not None else out
    leaves = [t for t in tensors((args, kwargs)) if t.requires_grad]
    outs = [t for t in tensors(out) if t.requires_grad]
    # a weight per element, so that a wrong position shows
    loss = sum(
        (t * torch.linspace(0.5, 1.5, t.numel(), dtype=t.real.dtype).reshape(t.shape).to(t.device))
        .sum()
        .abs()
        for t in outs
    )
    return (
        [g for g in torch.autograd.grad(loss, leaves, allow_unused=True) if g is not None]
        if outs
        else []
    )


class NoReference(Exception):
    """The CPU cannot run the sample."""
