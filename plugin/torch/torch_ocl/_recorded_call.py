"""One callable of ``make_graphed_callables``: its recording, and the calls that replay it.

Arguments are copied into the recording's own tensors, and results and gradients out of them, with
one launch for all: what a caller gives and gets is the caller's alone, whatever is replayed later.

What the forward pass saves for the backward pass is in memory that the next replay writes. While a
call waits for its backward pass, further calls therefore run without the graphs, and so do calls
for which the recording does not stand any more (``_watch.py``). A warning says so once per reason.
"""

import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_ocl import _C
from torch_ocl._watch import Watch
from torch_ocl.graphs import OCLGraph, Pool, graph
from torch_ocl.streams import _stream, current_stream

Tensors = tuple[torch.Tensor, ...]


class Recorded:
    """A callable with the tensors and the graphs of its recording."""

    def __init__(self, function: Callable[..., Any], samples: tuple[Any, ...]) -> None:
        self.function = function
        leaves, self.structure = pytree.tree_flatten(samples)
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise TypeError("sample_args of make_graphed_callables are tensors, or trees of them")
        for leaf in leaves:
            if leaf.device.type != "ocl":
                raise TypeError(
                    f"sample_args of make_graphed_callables are on ocl, not {leaf.device}"
                )
        self.is_flat = all(isinstance(sample, torch.Tensor) for sample in samples)
        # Not the samples themselves, which are the caller's.
        self.arguments: Tensors = tuple(
            leaf.detach().clone().requires_grad_(leaf.requires_grad) for leaf in leaves
        )
        module = function if isinstance(function, torch.nn.Module) else None
        self.parameters: Tensors = tuple(module.parameters()) if module is not None else ()
        self.watch = Watch(function)
        self.forward, self.backward = OCLGraph(), OCLGraph()
        self.outputs: Tensors = ()
        self.output_structure: pytree.TreeSpec | None = None
        self.output_gradients: tuple[torch.Tensor | None, ...] = ()
        self.gradients: tuple[torch.Tensor | None, ...] = ()
        self.saved: Tensors = ()  # parameters that the forward pass saves for the backward pass
        self._lock = threading.Lock()  # a call fills, replays and copies before the next one does
        self.device = -1
        self._stream: int | None = None  # of the last replay
        self._waiting: weakref.ref[_Call] | None = None  # the last call that has a backward pass
        self._told: set[str] = set()

    # ---- Recording

    def run(self) -> Tensors:
        """Calls the function without graphs, with the recording's own arguments."""
        result = self.function(*pytree.tree_unflatten(self.arguments, self.structure))
        leaves, self.output_structure = pytree.tree_flatten(result)
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise TypeError("make_graphed_callables takes callables that return tensors")
        return tuple(leaves)

    def differentiate(
        self,
        outputs: Sequence[torch.Tensor],
        gradients: Sequence[torch.Tensor | None],
        allow_unused: bool,
    ) -> tuple[torch.Tensor | None, ...]:
        """The gradients of arguments and parameters; None for those that need none."""
        inputs = (*self.arguments, *self.parameters)
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        found = iter(
            torch.autograd.grad(
                [tensor for tensor in outputs if tensor.requires_grad],
                wanted,
                [g for g in gradients if g is not None],
                # A second backward pass of one call reads what the forward pass has saved again:
                # while this one is recorded, nothing else may get that memory.
                retain_graph=True,
                allow_unused=allow_unused,
            )
            if wanted
            else ()
        )
        return tuple(next(found) if tensor.requires_grad else None for tensor in inputs)

    def warm_up(self, allow_unused: bool) -> None:
        outputs = self.run()
        self._check_leaves(outputs)
        ones = [torch.ones_like(o) if o.requires_grad else None for o in outputs]
        if any(one is not None for one in ones):
            self.differentiate(outputs, ones, allow_unused)

    def _check_leaves(self, outputs: Tensors) -> None:
        """A tensor from elsewhere that requires a gradient would never get one."""
        known = {id(tensor) for tensor in (*self.arguments, *self.parameters)}
        left = [output.grad_fn for output in outputs]
        seen: set[Any] = set()
        while left:
            node = left.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            leaf = node.variable if type(node).__name__ == "AccumulateGrad" else None
            if leaf is not None and id(leaf) not in known:
                raise RuntimeError(
                    f"make_graphed_callables: a tensor of shape {tuple(leaf.shape)} requires a "
                    "gradient, but is neither an argument nor a parameter of the callable, so "
                    "that it would get none: give it as an argument, or detach it"
                )
            left.extend(function for function, _ in node.next_functions)

    def record_forward(self, pool: Pool) -> None:
        saved: set[int] = set()

        def note(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.layout is torch.strided:
                saved.add(tensor.untyped_storage().data_ptr())
            return tensor

        versions = [tensor._version for tensor in self.arguments]
        self.device = _C.current_device()
        self.watch.begin()
        with graph(self.forward, pool=pool):
            with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
                self.outputs = self.run()
        if versions != [tensor._version for tensor in self.arguments]:
            raise RuntimeError(
                "make_graphed_callables: the callable changes an argument in place, which replays "
                "would do to a copy: let it change a clone, and return that"
            )
        self.saved = tuple(p for p in self.parameters if p.untyped_storage().data_ptr() in saved)
        self.watch.end()

    def record_backward(self, pool: Pool, allow_unused: bool) -> None:
        self.output_gradients = tuple(
            torch.empty_like(o) if o.requires_grad else None for o in self.outputs
        )
        if all(gradient is None for gradient in self.output_gradients):
            self.gradients = (None,) * (len(self.arguments) + len(self.parameters))
        else:
            with graph(self.backward, pool=pool):
                self.gradients = self.differentiate(
                    self.outputs, self.output_gradients, allow_unused
                )
        # What the recording saved for it is the pool's: the graph of autograd is not needed now.
        self.outputs = tuple(o.detach().requires_grad_(o.requires_grad) for o in self.outputs)

    # ---- Calls

    def call(self, arguments: tuple[Any, ...], eager: Callable[..., Any]) -> Any:
        """Replays with these arguments, or calls ``eager`` where that would not be the same."""
        leaves = self._leaves(arguments)
        reason = self.watch.difference()
        if reason is None:
            with self._lock:
                if self._waiting is None or self._waiting() is None:
                    results = _Replay.apply(self, *leaves, *self.parameters)
                    assert self.output_structure is not None
                    return pytree.tree_unflatten(results, self.output_structure)
            reason = "an earlier call still waits for its backward pass"
        if reason and reason not in self._told:
            self._told.add(reason)
            name = getattr(self.function, "__name__", type(self.function).__name__)
            warnings.warn(
                f"torch.ocl.make_graphed_callables: {name} runs without its graphs, as {reason}",
                RuntimeWarning,
                stacklevel=3,
            )
        return eager(*arguments)

    def _leaves(self, arguments: tuple[Any, ...]) -> Sequence[Any]:
        """The tensors of the arguments. TypeError if they are not like the samples."""
        leaves, structure = arguments, None
        if not self.is_flat:
            leaves, structure = pytree.tree_flatten(arguments)
        if len(leaves) != len(self.arguments) or structure not in (None, self.structure):
            raise TypeError(
                "a graphed callable takes arguments of the form of its sample_args, without "
                "keywords"
            )
        gradients = torch.is_grad_enabled()
        for i, (own, given) in enumerate(zip(self.arguments, leaves, strict=True)):
            if (
                not isinstance(given, torch.Tensor)
                or given.dtype != own.dtype
                or given.shape != own.shape
            ):
                raise TypeError(
                    f"argument {i} of a graphed callable is {_described(given)}; the sample "
                    f"was {_described(own)}"
                )
            if gradients and given.requires_grad and not own.requires_grad:
                raise TypeError(
                    f"argument {i} of a graphed callable requires a gradient; the sample did not, "
                    "so that the recording computes none"
                )
        return leaves

    def replay_forward(self, given: Sequence[torch.Tensor]) -> Tensors:
        """With the lock held."""
        self._follow_stream()
        _fill(self.arguments, given)
        self.forward.replay()
        return _copies(self.outputs)

    def replay_backward(
        self, given: Sequence[torch.Tensor | None], needed: Sequence[bool]
    ) -> list[torch.Tensor | None]:
        with self._lock:
            self._follow_stream()
            own = [gradient for gradient in self.output_gradients if gradient is not None]
            _fill(
                own,
                [
                    torch.zeros_like(gradient) if value is None else value
                    for gradient, value in zip(self.output_gradients, given, strict=True)
                    if gradient is not None
                ],
            )
            self.backward.replay()
            wanted = [
                need and gradient is not None
                for need, gradient in zip(needed, self.gradients, strict=True)
            ]
            copies = iter(
                _copies([g for g, want in zip(self.gradients, wanted, strict=True) if want])
            )
        return [next(copies) if want else None for want in wanted]

    def wait_for_backward(self, call: "_Call") -> None:
        self._waiting = weakref.ref(call)

    def _follow_stream(self) -> None:
        """Replays on several streams come one after another."""
        stream = _C.current_stream_id(self.device)
        if self._stream not in (None, stream):
            last = _stream(self.device, self._stream)
            current_stream(self.device).wait_stream(last)
        self._stream = stream


class _Call:
    """One call that waits for its backward pass, as long as this exists."""

    __slots__ = ("__weakref__",)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recorded: Recorded, *inputs: torch.Tensor) -> Tensors:
        results = recorded.replay_forward(inputs[: len(recorded.arguments)])
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(
            *[
                result
                for result, output in zip(results, recorded.outputs, strict=True)
                if not output.requires_grad
            ]
        )
        ctx.recorded, ctx.call = recorded, _Call()
        ctx.versions = _C.sum_of_versions(recorded.saved)
        recorded.wait_for_backward(ctx.call)
        return results

    @staticmethod
    def backward(ctx: Any, *given: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "a graphed callable cannot be differentiated twice (create_graph=True): call it "
                "without its graphs for that, as a copy.deepcopy() of a module does"
            )
        if ctx.call is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time: specify retain_graph=True in "
                "the first backward pass of a graphed callable"
            )
        recorded: Recorded = ctx.recorded
        if ctx.versions != _C.sum_of_versions(recorded.saved):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: a parameter of a graphed callable, between its forward and "
                "its backward pass"
            )
        gradients = recorded.replay_backward(given, ctx.needs_input_grad[1:])
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            ctx.call = None
        return (None, *gradients)


def _fill(own: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> None:
    if len(own) == 1:
        own[0].copy_(given[0])
    elif own:
        torch._foreach_copy_(own, given)


def _copies(tensors: Sequence[torch.Tensor]) -> Tensors:
    if len(tensors) == 1:
        return (tensors[0].clone(),)
    copies = tuple(torch.empty_like(tensor) for tensor in tensors)
    if copies:  # one launch; torch 2.11 has no _foreach_clone
        torch._foreach_copy_(copies, tensors)
    return copies


def _described(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    return f"{value.dtype} of shape {tuple(value.shape)}"
