"""Warming up: builds the programs that a model needs in parallel, before its first real step.

A rehearsal calls the model on a stream of its own, where work is done up to the first kernel whose
program is missing; from there on missing programs are only noted. These are built, by several
processes if the driver's compiler builds one program at a time in a process, and the model is
called again, until no program is missing.
"""

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from torch_ocl import _C
from torch_ocl._line import Line
from torch_ocl.streams import _stream, current_stream
from torch_ocl.streams import stream as stream_context


class WarmUp(NamedTuple):
    """The result of ``warmup``; ``seconds`` is the time that it took."""

    programs: int  # built, or taken from the cache on disk because another process built them
    calls: int  # of the model; the last one was complete
    seconds: float


def warmup(
    model: Callable[..., Any],
    inputs: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool | None = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    progress: bool | None = None,
) -> WarmUp:
    """Builds every program that a call of ``model`` needs, in parallel, and runs the model once.

    This pays where compiling is slow and the cache on disk is still empty: on a new machine, after
    a change of the driver, in a container. Shapes are not compiled in, so inputs of other sizes
    rarely need further programs.

    All calls but the last one compute wrong results. Therefore a module is called as a copy that
    shares its parameters, with copies of the inputs; afterwards gradients, parameters, the
    optimizer's state and the states of random generators are as before. The model must stay on the
    current stream.

    Args:
        model: a module, or any function of tensors on an ocl device; a function must not keep
            tensors from one call to the next.
        inputs: its positional arguments; a single tensor need not be wrapped.
        kwargs: its keyword arguments.
        backward: whether to run backward, too; None: if ``model`` is a module in training mode, or
            ``loss`` or ``optimizer`` is given, and gradients are enabled.
        loss: a scalar tensor of the model's result, to run backward from; None: the sum of its
            tensors that require a gradient.
        optimizer: makes two steps after backward, which are undone; its parameters are copied for
            that.
        progress: whether to show a line on standard error; None: if that is a terminal.

    Raises RuntimeError if neither model nor inputs are on an ocl device, if a module cannot be
    copied, or if the model fails.

    >>> torch.ocl.warmup(model, images, loss=lambda y: cross_entropy(y, labels), optimizer=sgd)
    WarmUp(programs=41, calls=2, seconds=4.9)
    """
    begin = time.perf_counter()
    arguments = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    named = dict(kwargs or {})
    if backward is None:
        training = isinstance(model, torch.nn.Module) and model.training
        wanted = training or loss is not None or optimizer is not None
        backward = wanted and torch.is_grad_enabled()
    parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    index = _device_index([*tree_leaves([arguments, named]), *parameters])
    if optimizer is not None:
        parameters += [p for group in optimizer.param_groups for p in group["params"]]

    def step() -> None:
        positional, keywords = _copies((arguments, named))
        result = _copy_of(model)(*positional, **keywords)
        total = (loss(result) if loss else _sum(result)) if backward else None
        with _gradients_kept([*parameters, *_leaves(total)]):
            if total is not None:
                total.backward()
            if optimizer is not None:
                optimizer.step()
                optimizer.step()  # later steps find a state, and may need other programs

    line = Line("warming up", progress)
    programs = calls = 0
    with torch.random.fork_rng(devices=[index], device_type="ocl"), _undone(optimizer), line:
        current_stream(index).synchronize()  # completes inputs and copies
        while True:
            calls += 1
            line.show(f"call {calls}")
            missing = _rehearse(step, index)
            if missing == 0:
                return WarmUp(programs, calls, time.perf_counter() - begin)
            left = missing
            while left:
                line.show(f"building programs: {missing - left} of {missing}")
                left = _C.build_missing(index)
            programs += missing


def _rehearse(step: Callable[[], None], index: int) -> int:
    """Calls ``step`` on the stream for rehearsals; returns how many programs were missing."""
    stream = _stream(index, _C.begin_rehearsal(index))
    failure = None
    try:
        with stream_context(stream):
            step()
    except Exception as error:  # expected if the step waits for a result that was not computed
        failure = error
    finally:
        missing = _C.end_rehearsal(index)
        stream.synchronize()
    if failure is not None and missing == 0:
        raise failure
    return missing


def _device_index(values: Sequence[Any]) -> int:
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == "ocl":
            return value.device.index
    raise RuntimeError("warmup: neither the model nor an input is on an ocl device")


def _copy_of(model: Callable[..., Any]) -> Callable[..., Any]:
    """A module with the same parameters, and copies of everything else: buffers and attributes."""
    if not isinstance(model, torch.nn.Module):
        return model
    try:
        return copy.deepcopy(model, {id(p): p for p in model.parameters()})
    except Exception as error:
        raise RuntimeError(
            f"warmup: the model cannot be copied ({error}); pass a function that calls it, if it "
            "keeps no tensors from one call to the next"
        ) from error


def _copies(values: Any) -> Any:
    """A copy of nested values in which tensors are copied, too."""

    def cloned(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().clone().requires_grad_(value.requires_grad)
        return copy.deepcopy(value)

    return tree_map(cloned, values)


def _sum(result: Any) -> torch.Tensor:
    parts = [
        t.sum() for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    if not parts:
        raise RuntimeError(
            "warmup: no tensor of the model's result requires a gradient; pass backward=False or "
            "loss="
        )
    return torch.stack([part.float() for part in parts]).sum() if len(parts) > 1 else parts[0]


def _leaves(total: torch.Tensor | None) -> list[torch.Tensor]:
    """The tensors that receive gradients from a backward pass."""
    found, seen = [], set()
    nodes = [] if total is None else [total.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        nodes += [following for following, _ in node.next_functions]
    return found


@contextlib.contextmanager
def _gradients_kept(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Removes the tensors' gradients at the begin of a block, and restores them at its end."""
    unique = list({id(t): t for t in tensors}.values())
    gradients = [t.grad for t in unique]
    for tensor in unique:
        tensor.grad = None
    try:
        yield
    finally:
        for tensor, gradient in zip(unique, gradients, strict=True):
            tensor.grad = gradient


@contextlib.contextmanager
def _undone(optimizer: torch.optim.Optimizer | None) -> Iterator[None]:
    """Restores an optimizer's parameters and state at the end of a block."""
    if optimizer is None:
        yield
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    values = [p.detach().clone() for p in parameters]
    state = copy.deepcopy(optimizer.state_dict())
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, values, strict=True):
                parameter.copy_(value)
        optimizer.load_state_dict(state)
