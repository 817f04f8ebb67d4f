"""Graphs: work that is recorded once and replayed, with little work of the host per operator.

>>> g = torch.ocl.OCLGraph()
>>> x = torch.zeros(8, 64, device="ocl")
>>> model(x)  # once before: builds programs, and lets libraries choose
>>> with torch.ocl.graph(g):
...     y = model(x)
>>> x.copy_(batch)
>>> g.replay()  # y has the new results

While a graph is recorded nothing is executed: tensors made meanwhile have no values until the first
replay. What would need values fails with an error and ends the recording: ``item()``, copies to the
CPU, operators whose results have shapes that depend on values, synchronisation, events. Copies from
the CPU fail, too, but for pinned memory with ``non_blocking=True``, which each replay reads again.

A replay uses the addresses of the recording. Tensors made in the recording are of the graph's
memory pool, which nothing else uses; tensors from before it must still exist, and new values go
into them in place. Random numbers are new ones in each replay. Only work of one stream is recorded,
and a device has at most one recording at a time.
"""

import functools
import gc
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_ocl import _C
from torch_ocl.memory import empty_cache
from torch_ocl.streams import Stream, StreamContext
from torch_ocl.streams import stream as use_stream

Pool = tuple[int, int]


def is_current_stream_capturing() -> bool:
    """Whether this thread's current stream is recording a graph."""
    return _C.is_current_stream_capturing()


def graph_pool_handle() -> Pool:
    """A name for a memory pool, for graphs that shall share one: ``torch.ocl.graph(g, pool=...)``.

    Graphs may share memory if they are replayed in the order in which they were recorded, and never
    at the same time. The memory exists while one of them does.
    """
    return _C.new_pool_id()


def _check_optimizer(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """A count of steps on the host would stand still in replays."""
    if not _C.is_current_stream_capturing():
        return
    for group in optimizer.param_groups:
        if group.get("capturable") is False and not group.get("fused"):
            raise RuntimeError(
                f"{type(optimizer).__name__} counts its steps on the host, where replays of a "
                "graph do not count: make it with capturable=True"
            )


@functools.cache
def _watch_optimizers() -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(_check_optimizer)


class OCLGraph:
    """Recorded work of one stream.

    ``torch.ocl.graph`` is the usual way to record; ``capture_begin`` and ``capture_end`` do it on
    the current stream, whose device is the graph's.
    """

    def __init__(self) -> None:
        self._graph = _C.Graph()

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Lets the recording draw from ``generator``, beside the device's default generator.

        To be called before the recording begins.
        """
        self._graph.register_generator_state(generator)

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """Begins to record what is enqueued on the current stream, by any thread.

        Args:
            pool: the memory to use, by ``graph_pool_handle()`` or another graph's ``pool()``; by
                default a pool of its own.
            capture_error_mode: "global", "thread_local" or "relaxed", for which ocl has one
                behaviour: calls that cannot be recorded fail in every thread.
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise ValueError(
                "capture_error_mode is 'global', 'thread_local' or 'relaxed', "
                f"not {capture_error_mode!r}"
            )
        _watch_optimizers()
        self._graph.capture_begin(pool or (0, 0))

    def capture_end(self) -> None:
        """Ends the recording. RuntimeError with the reason if a call has failed it."""
        self._graph.capture_end()

    def replay(self) -> None:
        """Enqueues the recorded work on the current stream of the graph's device."""
        self._graph.replay()

    def reset(self) -> None:
        """Forgets the recorded work, and leaves its pool; the object may record again."""
        self._graph.reset()

    def pool(self) -> Pool:
        """The name of the graph's memory pool, for another graph that shall share it."""
        return self._graph.pool()

    def info(self) -> dict[str, int]:
        """What a replay enqueues: "launches" of kernels, "transfers" (fills, copies, uploads), and
        "random_blocks", the counter blocks by which it advances the generators."""
        return self._graph.info()


class graph:  # noqa: N801  named as in torch.cuda
    """``with torch.ocl.graph(g):`` records the work inside into ``g``.

    Args:
        ocl_graph: the graph, without recorded work.
        pool: as for ``OCLGraph.capture_begin``.
        stream: records on it; by default on a stream of the current device for this purpose.

    Waits for the device first, and gives unoccupied memory back. If the body raises, the recording
    ends without a graph.
    """

    _streams: dict[int, Stream] = {}

    def __init__(
        self,
        ocl_graph: OCLGraph,
        pool: Pool | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self._graph = ocl_graph
        self._pool = pool
        self._mode = capture_error_mode
        device = _C.current_device()
        if stream is None:
            stream = self._streams.setdefault(device, Stream(device))
        self._stream = stream
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        _C.synchronize(self._stream.device_index)
        gc.collect()
        empty_cache()
        self._context.__enter__()
        try:
            self._graph.capture_begin(self._pool, self._mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._graph.capture_end()
            else:
                self._graph._graph.discard()
        finally:
            self._context.__exit__()


class _Recorded:
    """One callable: its static inputs and results, and the graphs of both directions."""

    def __init__(self, function: Callable[..., Any], samples: tuple[Any, ...]) -> None:
        self.function = function
        self.samples = samples
        leaves, self.structure = pytree.tree_flatten(samples)
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise TypeError("sample_args of make_graphed_callables are tensors, or trees of them")
        self.arguments = len(leaves)
        parameters = tuple(function.parameters()) if isinstance(function, torch.nn.Module) else ()
        self.inputs: tuple[torch.Tensor, ...] = (*leaves, *parameters)
        self.forward, self.backward = OCLGraph(), OCLGraph()
        self.outputs: tuple[torch.Tensor, ...] = ()
        self.output_structure: pytree.TreeSpec | None = None
        self.output_gradients: tuple[torch.Tensor | None, ...] = ()
        self.gradients: tuple[torch.Tensor | None, ...] = ()

    def call(self) -> tuple[torch.Tensor, ...]:
        leaves, self.output_structure = pytree.tree_flatten(self.function(*self.samples))
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise TypeError("make_graphed_callables takes callables that return tensors")
        return tuple(leaves)

    def differentiate(
        self,
        outputs: Sequence[torch.Tensor],
        gradients: Sequence[torch.Tensor | None],
        allow_unused: bool,
    ) -> tuple[torch.Tensor | None, ...]:
        """The gradients of all inputs; None for those that need none."""
        wanted = [tensor for tensor in self.inputs if tensor.requires_grad]
        found = iter(
            torch.autograd.grad(
                [tensor for tensor in outputs if tensor.requires_grad],
                wanted,
                [g for g in gradients if g is not None],
                allow_unused=allow_unused,
            )
            if wanted
            else ()
        )
        return tuple(next(found) if tensor.requires_grad else None for tensor in self.inputs)

    def warm_up(self, allow_unused: bool) -> None:
        outputs = self.call()
        ones = [torch.ones_like(o) if o.requires_grad else None for o in outputs]
        if any(one is not None for one in ones):
            self.differentiate(outputs, ones, allow_unused)

    def record_forward(self, pool: Pool) -> None:
        with graph(self.forward, pool=pool):
            self.outputs = self.call()

    def record_backward(self, pool: Pool, allow_unused: bool) -> None:
        self.output_gradients = tuple(
            torch.empty_like(o) if o.requires_grad else None for o in self.outputs
        )
        if all(gradient is None for gradient in self.output_gradients):
            self.gradients = (None,) * len(self.inputs)
            return
        with graph(self.backward, pool=pool):
            self.gradients = self.differentiate(self.outputs, self.output_gradients, allow_unused)
        # What the recording saved for it is the pool's: the graph of autograd is not needed now.
        self.outputs = tuple(o.detach().requires_grad_(o.requires_grad) for o in self.outputs)

    def replayed(self) -> Callable[..., Any]:
        """A callable that replays instead of calling."""
        recorded = self

        class Replay(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
                for static, given in zip(
                    recorded.inputs[: recorded.arguments], inputs, strict=False
                ):
                    if static.data_ptr() != given.data_ptr():
                        static.copy_(given)
                recorded.forward.replay()
                results = tuple(output.detach() for output in recorded.outputs)
                ctx.mark_non_differentiable(
                    *[
                        result
                        for result, output in zip(results, recorded.outputs, strict=True)
                        if not output.requires_grad
                    ]
                )
                return results

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, *given: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
                for static, gradient in zip(recorded.output_gradients, given, strict=True):
                    if static is not None and static.data_ptr() != gradient.data_ptr():
                        static.copy_(gradient)
                recorded.backward.replay()
                return tuple(g if g is None else g.detach() for g in recorded.gradients)

        parameters = self.inputs[self.arguments :]

        def call(*arguments: Any) -> Any:
            leaves, structure = pytree.tree_flatten(arguments)
            if structure != recorded.structure:
                raise TypeError(
                    "a graphed callable takes arguments of the form of its sample_args, without "
                    "keywords"
                )
            for i, (static, given) in enumerate(zip(recorded.inputs, leaves, strict=False)):
                if _described(static) != _described(given):
                    raise TypeError(
                        f"argument {i} of a graphed callable is {_described(given)}; the sample "
                        f"was {_described(static)}"
                    )
            assert recorded.output_structure is not None
            results = Replay.apply(*leaves, *parameters)
            return pytree.tree_unflatten(results, recorded.output_structure)

        return call


def _described(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    return f"{value.dtype} of shape {tuple(value.shape)}"


def _check(function: Callable[..., Any]) -> None:
    if not isinstance(function, torch.nn.Module):
        return
    if function._forward_hooks or function._forward_pre_hooks or function._backward_hooks:
        raise RuntimeError(
            "modules must not have hooks when they are passed to make_graphed_callables; "
            "hooks added afterwards run outside of the graph"
        )
    if any(buffer.requires_grad for buffer in function.buffers()):
        raise RuntimeError("buffers of a module that is graphed must not require gradients")


def _replace_forward(module: torch.nn.Module, replay: Callable[..., Any]) -> torch.nn.Module:
    """Makes a module replay in the mode (training or not) in which it was recorded."""
    eager, mode = module.forward, module.training

    def forward(*arguments: Any, **keywords: Any) -> Any:
        if module.training != mode or keywords:
            return eager(*arguments, **keywords)
        return replay(*arguments)

    module.forward = forward  # type: ignore[method-assign]
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
        callables: a function or module of tensors, or a tuple of them, which are then called in the
            tuple's order, with all backward passes after all forward passes.
        sample_args: the positional arguments as a tuple; for several callables a tuple of such
            tuples. Later arguments have the same shapes, types and ``requires_grad``.
        num_warmup_iters: runs before the recording.
        allow_unused_input: whether inputs may have no gradient.
        pool: the graphs' memory, as for ``torch.ocl.graph``.

    A module keeps its parameters: what changes them in place, as optimizers do, changes what the
    graphs compute with. It is returned itself, and replays while its ``training`` is as it was.
    Results and gradients are overwritten by the next call; double backward is not possible.
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
    for function in functions:
        _check(function)
    recorded = [_Recorded(f, tuple(s)) for f, s in zip(functions, samples, strict=True)]
    pool = pool or graph_pool_handle()
    side = Stream()
    _C.synchronize(side.device_index)
    with use_stream(side):
        for one in recorded:
            for _ in range(num_warmup_iters):
                one.warm_up(allow_unused_input)
    _C.synchronize(side.device_index)
    for one in recorded:
        one.record_forward(pool)
    for one in reversed(recorded):
        one.record_backward(pool, allow_unused_input)
    made = tuple(
        _replace_forward(one.function, one.replayed())
        if isinstance(one.function, torch.nn.Module)
        else one.replayed()
        for one in recorded
    )
    return made[0] if is_single else made
