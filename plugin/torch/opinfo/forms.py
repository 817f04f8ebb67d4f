"""Results written where the caller says: out= and in-place forms of op_db's entries, in every way
that the CPU takes or refuses them. The modes out and inplace of sweep.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import accepted
import torch
from samples import TOLERANCE, UNPREDICTABLE, WIDER, NoReference, compare, move, tensors
from torch.testing._internal.common_utils import noncontiguous_like
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput
from values import exact_result

Tensors = list[torch.Tensor]


def garbage(like: torch.Tensor) -> torch.Tensor:
    """Memory whose numbers must not show in the result."""
    full = torch.full_like(like, 77 if like.dtype != torch.bool else True)
    return full * float("nan") if like.is_floating_point() or like.is_complex() else full


def wider(like: torch.Tensor) -> torch.Tensor:
    """A type that takes the result's numbers, or, for the widest, the other kind of numbers."""
    types = {
        torch.float32: torch.float64,
        torch.complex64: torch.complex128,
        torch.int64: torch.float32,
        torch.int32: torch.int64,
        torch.bool: torch.int64,
    }
    return torch.empty_like(like, dtype=types.get(like.dtype, torch.float32))


# How the tensor for a result can be: each makes it from the result.
PLACES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as the result": garbage,
    "with gaps": lambda t: noncontiguous_like(garbage(t)),
    "transposed": lambda t: garbage(t.mT.contiguous()).mT if t.dim() > 1 else garbage(t),
    "without elements": lambda t: t.new_empty(0),
    "of another shape": lambda t: garbage(t.new_empty((*t.shape, 2))),
    "of a wider type": wider,
    "of integers": lambda t: torch.zeros_like(t, dtype=torch.int32),
}


def written(op: OpInfo, sample: SampleInput, device: str, places: Tensors, single: bool) -> Any:
    """The tensors of the call afterwards, or the error that it raised."""
    torch.manual_seed(1)
    args = (move(sample.input, device), *move(tuple(sample.args), device))
    kwargs = move(sample.kwargs, device)
    if "device" in kwargs:
        kwargs["device"] = device
    here = move(places, device)
    before = [(t.data_ptr(), t.stride(), t.shape) for t in here]
    try:
        with torch.no_grad(), torch.device(device):
            got = op.op(*args, **kwargs, out=here[0] if single else tuple(here))
    except Exception as error:
        if device == "ocl" and isinstance(error, NotImplementedError):
            raise  # declined
        return error
    for a, b in zip(tensors(got), here, strict=bool(tensors(got))):
        assert a is b or a.data_ptr() == b.data_ptr(), "the result is not the tensor that was given"
    for t, (pointer, stride, shape) in zip(here, before, strict=True):
        if t.shape == shape and t.numel():
            assert (t.data_ptr(), t.stride()) == (pointer, stride), "it was allocated anew"
    return here


def same_answer(
    op: OpInfo, sample: SampleInput, got: Any, want: Any, dtype: Any, what: str
) -> None:
    """Both refused, or both gave the same numbers."""
    if isinstance(want, Exception) and isinstance(got, Exception):
        return
    assert isinstance(want, list) and isinstance(got, list), (
        f"{what}: {said(got)} instead of {said(want)}"
    )
    try:
        compare(got, want, dtype, op.name not in UNPREDICTABLE)
    except AssertionError as error:
        if accepted.accepts(op, sample, tensors(got), tensors(want)):
            return
        exact = exact_result(op, sample, False, tensors(want)) if dtype in WIDER else None
        if exact is None or not all(map(close, [t.cpu() for t in got], exact)):
            raise AssertionError(f"{what}: {error}") from error


def said(value: Any) -> str:
    if isinstance(value, Exception):
        return f"{type(value).__name__} ({str(value)[:160]})"
    return "a result"


def out(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    """out= tensors as in PLACES: the same numbers and refusals as on the CPU."""
    if not op.supports_out or sample.kwargs.get("out") is not None:
        return
    torch.manual_seed(1)
    try:
        with torch.no_grad():
            result = op.op(move(sample.input, "cpu"), *sample.args, **sample.kwargs)
    except Exception as error:
        raise NoReference(str(error)) from error
    results = tensors(result)
    if not results or any(t.layout != torch.strided for t in results):
        return
    single = isinstance(result, torch.Tensor)
    for name, make in PLACES.items():
        places = [make(t.detach()) for t in results]
        try:
            want = written(op, sample, "cpu", places, single)
            if name in ("as the result", "with gaps", "transposed") and isinstance(want, list):
                wrong = [w for w, r in zip(want, results, strict=True) if not close(w, r)]
                assert not wrong or op.name in UNPREDICTABLE, "other numbers than without"
        except AssertionError as error:
            raise NoReference(f"the CPU, out {name}: {error}") from error
        got = written(op, sample, "ocl", places, single)
        if isinstance(want, Exception) and isinstance(got, list):
            # ocl converts, as other devices of ATen do, where the CPU asks for the type itself.
            want = [r.to(t.dtype) for r, t in zip(results, got, strict=True)]
        if name == "of a wider type" and isinstance(want, list):  # wider, but not more exact
            want, got = narrow(want, results), narrow(got, results)
        same_answer(op, sample, got, want, dtype, f"out {name}")


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    rtol, atol = TOLERANCE.get(b.dtype, (0, 0))
    same = a.shape == b.shape and a.dtype == b.dtype
    return same and torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def narrow(found: Any, like: Tensors) -> Any:
    if isinstance(found, Exception):
        return found
    return [t.to(r.dtype) if t.dtype != r.dtype else t for t, r in zip(found, like, strict=True)]


# How the tensor that is changed in place can lie in memory.
SELVES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as it is": lambda t: t,
    "with gaps": noncontiguous_like,
    "expanded": lambda t: t.new_ones(t.shape[:-1] + (1,)).expand(t.shape) if t.dim() else t,
    "read by itself": lambda t: t,
}


# They say where a tensor lies.
PLACED = {"resize_", "resize_as_", "as_strided", "as_strided_"}


def changed(op: OpInfo, sample: SampleInput, device: str, itself: torch.Tensor, alias: bool) -> Any:
    """The tensor after its in-place call, or the error that it raised."""
    torch.manual_seed(1)
    here = move(itself, device)
    args, kwargs = move(tuple(sample.args), device), move(sample.kwargs, device)
    if alias:  # the operand of the same shape is the tensor itself
        args = tuple(here if isinstance(a, torch.Tensor) and like(a, here) else a for a in args)
    pointer, stride = here.data_ptr(), here.stride()
    shape = here.shape
    try:
        with torch.no_grad():
            got = op.get_inplace()(here, *args, **kwargs)
    except Exception as error:
        if device == "ocl" and isinstance(error, NotImplementedError):
            raise  # declined
        return error
    assert got is here, "the result is another tensor"
    if got.shape == shape and got.stride() != stride:
        raise AssertionError(f"strides {got.stride()} instead of {stride}")
    assert got.data_ptr() == pointer, "it was allocated anew"
    return [here]


def like(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.layout == b.layout


def inplace(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    """The in-place method on tensors as in SELVES: the CPU's numbers and refusals."""
    if op.name in PLACED or op.get_inplace() is None or not isinstance(sample.input, torch.Tensor):
        return
    if sample.broadcasts_input or sample.input.layout != torch.strided:
        return
    for name, make in SELVES.items():
        alias = name == "read by itself"
        if alias and not isinstance(op, BinaryUfuncInfo):
            continue  # what is read may have been written already, on any device
        itself = make(sample.input.detach())
        try:
            want = changed(op, sample, "cpu", itself, alias)
        except AssertionError as error:
            raise NoReference(f"the CPU in place, {name}: {error}") from error
        got = changed(op, sample, "ocl", itself, alias)
        same_answer(op, sample, got, want, dtype, f"in place, {name}")
