"""Forward results and gradients of a sample on ocl against the CPU's, or float64's where that is
better: the modes forward, grad and noncontiguous of sweep.py."""

from __future__ import annotations

from typing import Any

import accepted
import torch
from samples import (
    UNPREDICTABLE,
    WIDER,
    NoReference,
    call,
    compare,
    tensors,
    widen,
)
from torch.testing._internal.opinfo.core import OpInfo, SampleInput


def exact_result(
    op: OpInfo, sample: SampleInput, grad: bool, like: list[torch.Tensor]
) -> list[torch.Tensor] | None:
    """The CPU's result on float64 copies, rounded to the types of `like`; None where the CPU
    refuses them."""
    try:
        exact = tensors(call(op, sample, "cpu", grad, widen))
    except Exception:
        return None
    return [t.to(w.dtype) if WIDER.get(w.dtype) == t.dtype else t for t, w in zip(exact, like)]


def run_sample(op: OpInfo, sample: SampleInput, dtype: Any, grad: bool) -> None:
    attention_dropout = sample.kwargs.get("dropout_p") or (
        op.name.endswith("multi_head_attention_forward") and sample.args[9]
    )
    predictable = op.name not in UNPREDICTABLE and not attention_dropout and op.name != "to"
    try:
        want = call(op, sample, "cpu", grad)
    except NotImplementedError as error:
        raise NoReference(str(error)) from error
    except RuntimeError as error:
        if "does not support automatic differentiation" not in str(error):
            raise
        raise NoReference(str(error)) from error
    got = call(op, sample, "ocl", grad)
    try:
        compare(got, want, dtype, predictable)
    except AssertionError:
        if not predictable:
            raise
        if not grad and accepted.accepts(op, sample, tensors(got), tensors(want)):
            return
        # torch's float32 may be the worse of the two: float64 decides.
        exact = exact_result(op, sample, grad, tensors(want)) if dtype in WIDER else None
        if exact is None:
            raise
        if grad and accepted.accepts_gradient(op, sample, tensors(got), exact):
            return
        if accepted.accepts_conditioned(
            op,
            tensors(got),
            lambda nudge: tensors(call(op, sample, "cpu", grad, lambda v: nudge(widen(v)))),
        ):
            return
        compare(tensors(got), exact, dtype, predictable)


def noncontiguous(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    """The sample with gaps between the elements of every tensor; results and gradients."""
    grad = any(t.requires_grad for t in tensors((sample.input, sample.args, sample.kwargs)))
    try:
        gaps = sample.noncontiguous()
        call(op, gaps, "cpu", grad)
    except RuntimeError as error:  # some want neighbours, sparse ones have no such form
        raise NoReference(str(error)) from error
    run_sample(op, gaps.transform(lambda v: v.detach() if torch.is_tensor(v) else v), dtype, False)
    if grad:
        run_sample(op, gaps, dtype, True)
