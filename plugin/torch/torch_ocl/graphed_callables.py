"""``torch.ocl.make_graphed_callables``: modules and functions that replay, with gradients."""

import copyreg
import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch

from torch_ocl import _C
from torch_ocl._recorded_call import Recorded
from torch_ocl.graphs import Pool, graph_pool_handle
from torch_ocl.streams import Stream
from torch_ocl.streams import stream as use_stream


def _check(functions: tuple[Any, ...]) -> None:
    for i, function in enumerate(functions):
        if not isinstance(function, torch.nn.Module):
            continue
        if any(function is other for other in functions[:i]):
            raise ValueError("a module is given to make_graphed_callables twice")
        if (
            function._forward_hooks
            or function._forward_pre_hooks
            or function._backward_hooks
            or function._backward_pre_hooks
        ):
            raise RuntimeError(
                "modules must not have hooks when they are passed to make_graphed_callables; "
                "hooks added afterwards run outside of the graph"
            )
        if any(buffer.requires_grad for buffer in function.buffers()):
            raise RuntimeError("buffers of a module that is graphed must not require gradients")


def _function(recorded: Recorded) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        if torch.compiler.is_compiling():
            return recorded.function(*arguments)
        return recorded.call(arguments, recorded.function)

    return call


def _plain(module: torch.nn.Module) -> None:
    """Takes an earlier recording from a module."""
    plain = vars(type(module)).get("_torch_ocl_plain")
    if plain is None or plain[0]() is not module:
        return
    _, module.__class__, attributes = plain
    vars(module).update(attributes)


def _replay_in_place(module: torch.nn.Module, recorded: Recorded) -> torch.nn.Module:
    """Makes a module replay in the mode (training or not) in which it was recorded.

    By a class of its own: a copy or a replica that has this class is another object, by which its
    calls are told from the module's, and what pickle and copy make has the class from before.
    """
    base, owner, mode = type(module), weakref.ref(module), module.training
    # A forward of the object's own, as accelerate sets, would hide the one of the class.
    attributes = {k: v for k, v in vars(module).items() if k == "forward"}
    own = vars(module).pop("forward", None)

    @functools.wraps(base.forward if own is None else own)
    def forward(self: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
        if own is None and torch.compiler.is_compiling():
            return base.forward(self, *arguments, **keywords)
        is_owner = self is owner()
        eager = functools.partial(base.forward, self) if own is None or not is_owner else own
        if torch.compiler.is_compiling() or not is_owner or self.training != mode or keywords:
            return eager(*arguments, **keywords)
        return recorded.call(arguments, eager)

    def reduce(self: torch.nn.Module, protocol: Any) -> Any:
        make, given, *rest = super(made, self).__reduce_ex__(protocol)  # type: ignore[misc]
        if make is copyreg.__newobj__ and given == (made,):  # type: ignore[attr-defined]
            # pickle takes __newobj__ for objects of that very class alone.
            make, given = copyreg._reconstructor, (base, object, None)  # type: ignore[attr-defined]
        given = tuple(base if value is made else value for value in given)
        if self is owner() and rest and isinstance(rest[0], dict):
            rest[0] = {**rest[0], **attributes}
        return (make, given, *rest)

    body = {
        "forward": forward,
        "__reduce_ex__": reduce,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "_torch_ocl_plain": (owner, base, attributes),
        "_torch_ocl_recorded": recorded,
    }
    made = type(base)(base.__name__, (base,), body)
    module.__class__ = made
    return module


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Pool | None = None,
) -> Any:
    """Records callables, and what autograd does for them, as graphs; returns what replays them.

    Args:
        callables: a function or module of tensors, or a tuple of them.
        sample_args: the positional arguments as a tuple; for several callables a tuple of such
            tuples. They are not changed. Later arguments have the same shapes and types, and
            require gradients only where the samples do.
        num_warmup_iters: runs before the recording.
        allow_unused_input: whether inputs may have no gradient.
        pool: the graphs' memory, as for ``torch.ocl.graph``; by default each callable has its own.
            Callables of a common pool are called in the tuple's order, with all backward passes
            after all forward passes, in the other order.

    A module keeps its parameters: what changes them in place, as optimizers do, changes what the
    graphs compute with. It is returned itself, and replays while its ``training`` is as it was, for
    calls without keywords. Its copies, and what is loaded where it was saved, are modules without
    graphs; torch.compile compiles it without them. Hooks that its submodules get afterwards do not
    run in replays.

    Results and gradients are the caller's own. What the forward pass saves for the backward pass is
    the graphs': a call before the last one's backward pass runs without graphs, which a warning
    says once. So do calls when a parameter, a buffer, a submodule or its mode was replaced, or when
    autocast or the gradient mode is another than in the recording; a new recording makes them fast
    again. Double backward is not possible; a second backward pass (``retain_graph=True``) is.

    Raises:
        TypeError: for arguments, or results, that are no tensors of ocl.
        RuntimeError: for what replays would not do: hooks, a buffer that is replaced, an argument
            that is changed in place, a gradient for a tensor that is no argument and no parameter.
    """
    if torch.is_autocast_enabled("ocl") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables cannot work with autocast's cache: use "
            "torch.autocast('ocl', cache_enabled=False)"
        )
    is_single = not isinstance(callables, tuple)
    functions = (callables,) if is_single else callables
    samples = (sample_args,) if is_single else sample_args
    if len(functions) != len(samples):
        raise ValueError(f"{len(functions)} callables, but sample_args for {len(samples)}")
    _check(functions)
    for function in functions:
        if isinstance(function, torch.nn.Module):
            _plain(function)
    recorded = [Recorded(f, tuple(s)) for f, s in zip(functions, samples, strict=True)]
    side = Stream()
    _C.synchronize(side.device_index)
    with use_stream(side):
        for one in recorded:
            for _ in range(num_warmup_iters):
                one.warm_up(allow_unused_input)
    _C.synchronize(side.device_index)
    # Memory that a recording frees may be that of the next recording in its pool: with pools of
    # their own, callables may be called in any order.
    pools = [pool or graph_pool_handle() for _ in recorded]
    for one, own in zip(recorded, pools, strict=True):
        one.record_forward(own)
    for one, own in zip(reversed(recorded), reversed(pools), strict=True):
        one.record_backward(own, allow_unused_input)
    made = tuple(
        _replay_in_place(one.function, one)
        if isinstance(one.function, torch.nn.Module)
        else _function(one)
        for one in recorded
    )
    return made[0] if is_single else made
