"""Derivatives other than one backward pass: forward mode, second gradients, and PyTorch's checks of
both by differences. The modes forward-mode, second, gradcheck and gradgradcheck of sweep.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import accepted
import torch
from samples import HOST_ARGUMENTS, UNPREDICTABLE, WIDER, NoReference, compare, move, tensors, widen
from torch.autograd import forward_ad
from torch.testing._internal.opinfo.core import OpInfo, SampleInput


def weights(like: torch.Tensor, start: float = 0.5) -> torch.Tensor:
    """A number for every element, so that a wrong position shows."""
    line = torch.linspace(start, 1.5, like.numel(), dtype=torch.float64)
    return line.to(like.real.dtype).reshape(like.shape).to(like.device)


def differentiable(value: Any) -> list[torch.Tensor]:
    return [t for t in tensors(value) if t.is_floating_point() or t.is_complex()]


Convert = Callable[[Any], Any]


def same(value: Any) -> Any:
    return value


def bind(op: OpInfo, sample: SampleInput, device: str, convert: Convert) -> tuple[list, dict]:
    """The arguments on the device, and the keyword arguments."""
    place = "cpu" if op.name in HOST_ARGUMENTS else device
    args = convert([move(sample.input, device), *move(tuple(sample.args), place)])
    kwargs = convert(move(sample.kwargs, device))
    if "device" in kwargs:
        kwargs["device"] = device
    return args, kwargs


def tangents(op: OpInfo, sample: SampleInput, device: str, convert: Convert) -> list[torch.Tensor]:
    """Values and forward derivatives of the results, along one direction of all arguments."""
    torch.manual_seed(1)
    args, kwargs = bind(op, sample, device, convert)
    with forward_ad.dual_level(), torch.device(device):

        def dual(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and value.requires_grad:
                value = value.detach()
                return forward_ad.make_dual(value, weights(value, -1).to(value.dtype))
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                return type(value)(map(dual, value)) if not hasattr(value, "_fields") else value
            return value

        result = op.gradcheck_wrapper(
            op.op, *[dual(a) for a in args], **{k: dual(v) for k, v in kwargs.items()}
        )
        if sample.output_process_fn_grad is not None:
            result = sample.output_process_fn_grad(result)
        pairs = [forward_ad.unpack_dual(t) for t in differentiable(result)]
        found = [t for pair in pairs for t in pair if t is not None]
        return [t.detach().resolve_conj().resolve_neg().clone() for t in found]


def second_gradients(
    op: OpInfo, sample: SampleInput, device: str, convert: Convert
) -> list[torch.Tensor]:
    """Gradients of a weighted sum of gradients."""
    torch.manual_seed(1)
    args, kwargs = bind(op, sample, device, convert)
    leaves = [t for t in tensors((args, kwargs)) if t.requires_grad]
    with torch.device(device):
        result = op.gradcheck_wrapper(op.op, *args, **kwargs)
    if sample.output_process_fn_grad is not None:
        result = sample.output_process_fn_grad(result)
    outs = [t for t in tensors(result) if t.requires_grad]
    if not outs:
        return []
    first = gradients(outs, leaves, create_graph=True)
    return gradients([t for t in first if t.requires_grad], leaves) if first else []


def gradients(
    outs: list[torch.Tensor], leaves: list[torch.Tensor], create_graph: bool = False
) -> list[torch.Tensor]:
    if not outs:
        return []
    loss = sum((t * weights(t)).sum().abs() for t in outs)
    found = torch.autograd.grad(loss, leaves, allow_unused=True, create_graph=create_graph)
    return [t for t in found if t is not None]


def against_cpu(how: Callable, op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    """What `how` gives on ocl is what it gives on the CPU, or there in the wider type."""
    try:
        want = how(op, sample, "cpu", same)
    except Exception as error:
        raise NoReference(f"{type(error).__name__}: {error}") from error
    got = how(op, sample, "ocl", same)
    predictable = op.name not in UNPREDICTABLE and op.name != "to"  # it names a device
    try:
        compare(got, want, dtype, predictable)
    except AssertionError:
        if dtype not in WIDER or not predictable:
            raise
        if accepted.accepts_conditioned(
            op, got, lambda nudge: how(op, sample, "cpu", lambda value: nudge(widen(value)))
        ):
            return
        exact = how(op, sample, "cpu", widen)
        narrow = [t.to(w.dtype) for t, w in zip(exact, want, strict=True)]
        compare(got, narrow, dtype, predictable)


def forward_mode(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    if op.supports_forward_ad:
        against_cpu(tangents, op, sample, dtype)


def second(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    if op.supports_gradgrad:
        against_cpu(second_gradients, op, sample, dtype)


def by_differences(check: Callable, op: OpInfo, sample: SampleInput, **options: Any) -> None:
    """PyTorch's check on ocl, of random operators for one seed; where that fails on the CPU, too,
    there is no reference."""

    def run(device: str) -> None:
        args, kwargs = bind(op, sample, device, same)
        leaves = [t for t in tensors((args, kwargs)) if t.requires_grad]
        order = {id(t): i for i, t in enumerate(leaves)}

        def function(*values: torch.Tensor) -> Any:
            def put(value: Any) -> Any:
                if isinstance(value, torch.Tensor):
                    return values[order[id(value)]] if id(value) in order else value
                if isinstance(value, dict):
                    return {k: put(v) for k, v in value.items()}
                if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                    return type(value)(map(put, value))
                return value

            torch.manual_seed(1)
            with torch.device(device):
                result = op.gradcheck_wrapper(op.op, *put(args), **put(kwargs))
            if sample.output_process_fn_grad is not None:
                result = sample.output_process_fn_grad(result)
            found = tuple(t for t in tensors(result) if t.is_floating_point() or t.is_complex())
            if device == "ocl" and any(t.is_cpu for t in found):
                torch.ocl.synchronize()  # as after any copy to the CPU with non_blocking=True
            return found

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(2)
            if leaves and any(t.requires_grad for t in function(*leaves)):
                check(function, tuple(leaves), fast_mode=True, raise_exception=True, **options)

    try:
        run("ocl")
    except NotImplementedError:
        raise
    except Exception as error:
        try:
            run("cpu")
        except Exception as theirs:
            raise NoReference(f"{type(theirs).__name__}: {theirs}") from theirs
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def gradcheck(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    if op.supports_autograd:
        by_differences(
            torch.autograd.gradcheck,
            op,
            sample,
            check_forward_ad=op.supports_forward_ad,
            nondet_tol=op.gradcheck_nondet_tol,
        )


def gradgradcheck(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    if op.supports_gradgrad:
        by_differences(torch.autograd.gradgradcheck, op, sample, nondet_tol=op.gradcheck_nondet_tol)
