"""Places of PyTorch that know device types by name, changed while a graph of ocl is compiled.

Each row says why it is needed, for which versions, and where PyTorch may make it unnecessary;
``test_compile_patches.py`` fails when one is. Nothing is changed for graphs of other devices.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import sympy
import torch
from torch._inductor import compile_fx, graph, ir, lowering, scheduler, utils
from torch._inductor.fx_passes import joint_graph, post_grad, reinplace
from torch._inductor.fx_utils import get_node_storage
from torch._inductor.virtualized import V
from torch.utils import _pytree as pytree

from torch_ocl.inductor import combo, decide
from torch_ocl.inductor.target import KEPT_ROW, Target
from torch_ocl.inductor.types import WIDTH

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


@dataclasses.dataclass(frozen=True)
class Patch:
    where: Any
    name: str
    make: Callable[[Any], Any]
    """The replacement, made from the original."""
    why: str
    thread: str = ""
    until: tuple[int, int] = (99, 0)
    """The first version that does not need it."""

    def applies(self) -> bool:
        return VERSION < self.until and hasattr(self.where, self.name)


def _create_backend(original: Callable) -> Callable:
    @functools.wraps(original)
    def create_backend(self: Any, device: torch.device) -> Any:
        if device.type != "ocl":
            return original(self, device)
        from torch_ocl.inductor.scheduling import OpenCLScheduling

        scheduler.V.graph.add_device_info(device)
        return OpenCLScheduling(self)

    return create_backend


def _always(answer: Any) -> Callable[[Any], Callable]:
    return lambda original: lambda *_, **__: answer


def _not_for_ocl(original: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda device: device != "ocl" and original(device)


def _two_steps_over_kept_rows(original: Callable) -> Callable:
    @functools.wraps(original)
    def use_two_step_variance(x: Any, axis: Any, *args: Any, **kwargs: Any) -> bool:
        return _is_kept_row(x, axis) or original(x, axis, *args, **kwargs)

    return use_two_step_variance


def _is_kept_row(x: Any, axis: Any) -> bool:
    """Whether the reduced axes are the last ones, of a tensor whose kernels keep such rows."""
    device, sizes = x.get_device(), list(x.get_size())
    if device is None or device.type != "ocl" or Target.of(device).style != "cpu":
        return False
    axes = range(len(sizes)) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted(a % len(sizes) for a in axes) if sizes else []
    row = [sizes[a] for a in axes]
    is_last = axes == list(range(len(sizes) - len(axes), len(sizes)))
    is_known = all(isinstance(n, (int, sympy.Integer)) for n in row)
    return is_last and is_known and WIDTH <= math.prod(map(int, row)) <= KEPT_ROW


def _changes_its_own_memory_alone(original: dict[Any, Any]) -> dict[Any, Any]:
    def with_check(row: Any) -> Any:
        def check(node: torch.fx.Node) -> bool:
            return row.extra_check(node) and not _is_read_elsewhere(node)

        return dataclasses.replace(row, extra_check=check)

    # Collectives of several tensors are left as they are.
    return {
        operator: with_check(row) if row.mutated_arg == 0 else row
        for operator, row in original.items()
    }


def _is_read_elsewhere(node: torch.fx.Node) -> bool:
    """Whether another argument, or a concatenation, whose pieces are made where they end up, has
    the memory of the first argument."""
    changed = get_node_storage(node.args[0])
    joins = node.graph.find_nodes(op="call_function", target=torch.ops.aten.cat.default)
    others = pytree.tree_leaves([node.args[1:], [join.args for join in joins]])
    return any(get_node_storage(n) == changed for n in others if isinstance(n, torch.fx.Node))


def _repeats_what_is_one_by_its_numbers(_: Callable) -> Callable:
    def make_reindexer(self: Any) -> Callable[[Any], list[Any]]:
        sizes = self.data.get_size()
        is_one = [V.graph.sizevars.is_size_one_or_false(size) for size in sizes]
        added = len(self.get_size()) - len(sizes)

        def reindex(index: Any) -> list[Any]:
            pairs = zip(index[added:], is_one, strict=True)
            return [sympy.S.Zero if one else place for place, one in pairs]

        return reindex

    return make_reindexer


PATCHES = (
    Patch(
        utils,
        "GPU_TYPES",
        lambda original: [*original, "ocl"],
        "is_gpu() decides by this list: else pointwise operators of a number on the CPU and a "
        "tensor run on the CPU, and loops are merged as for the CPU",
        "pytorch/pytorch#190326",
    ),
    Patch(
        utils,
        "get_gpu_type",
        _always("ocl"),
        "it asserts that one type is available, and keeps its answer: fails beside CUDA",
        "pytorch/pytorch#189367",
    ),
    Patch(post_grad, "get_gpu_type", _always("ocl"), "a copy of the name", "the same"),
    Patch(joint_graph, "get_gpu_type", _always("ocl"), "a copy of the name", "the same"),
    Patch(
        post_grad,
        "is_gpu",
        _not_for_ocl,
        "splits addmm into a product and a sum: one more pass over memory than ocl's addmm",
    ),
    Patch(
        compile_fx,
        "get_input_idxs_to_check",
        _always([]),
        "copies inputs that do not begin at a multiple of 16 bytes; kernels of ocl take any",
    ),
    Patch(
        utils,
        "is_big_gpu",
        _always(False),
        "counts multiprocessors for templates that ocl does not have, and warns of too few",
    ),
    Patch(
        scheduler.Scheduler,
        "create_backend",
        _create_backend,
        "a GPU type without Triton is an error; only mps is let through",
        "pytorch/pytorch#190324",
    ),
    Patch(
        lowering,
        "needs_fallback_due_to_atomic_add_limitations",
        _always(True),
        "sums by index are operators, in a fixed order: no kernel adds atomically",
    ),
    Patch(
        lowering,
        "use_two_step_variance",
        _two_steps_over_kept_rows,
        "a mean and then a sum of squares cost less than moments where a row is read once",
    ),
    Patch(
        lowering,
        "use_scatter_fallback",
        _always(True),
        "the same for scatter",
    ),
    Patch(
        reinplace,
        "inplaceable_ops",
        _changes_its_own_memory_alone,
        "x.index_put((places,), x) becomes a change of x that reads x meanwhile (every device), "
        "and a change of what a concatenation has as its piece changes that (GPUs)",
    ),
    Patch(
        ir.ExpandView,
        "make_reindexer",
        _repeats_what_is_one_by_its_numbers,
        "a size that varies and is 1, as n - (n + 1) // 2 of 3, is taken for one to be repeated "
        "everywhere but there, and memory behind the tensor is read (every device)",
    ),
    Patch(
        scheduler.ForeachKernelSchedulerNode,
        "group_algorithm_for_combo_kernels",
        lambda original: combo.rounds,
        "by the depth in the graph alone, few kernels meet that could share a launch",
    ),
    Patch(
        graph.GraphLowering,
        "call_function",
        decide.call_function,
        "what kernels cannot do becomes a call of the operator (decide.py)",
    ),
)


@contextlib.contextmanager
def applied() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for patch in PATCHES:
            if patch.applies():
                replacement = patch.make(getattr(patch.where, patch.name))
                stack.enter_context(mock.patch.object(patch.where, patch.name, replacement))
        yield
