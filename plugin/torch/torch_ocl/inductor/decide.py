"""Which nodes of a graph become kernels: those whose operations and types kernels have. Any other
is a call of its operator, and the report says why."""

import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch._inductor import ir
from torch._inductor.lowering import fallback_handler
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.utils import sympy_index_symbol
from torch._inductor.virtualized import V
from torch.utils import _pytree as pytree

from torch_ocl.inductor import types
from torch_ocl.inductor.report import report
from torch_ocl.inductor.target import Target

# Operations that the kernel itself has (kernel.py), or that only analyses see.
_OF_KERNELS = frozenset(
    "load store store_reduction reduction index_expr value_expr constant indirect_indexing "
    "check_bounds load_seed masked output placeholder set_indirect getitem".split()
)


class _Uses(DefaultHandler):
    """Runs a node's formula to see its operations and the types it names."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.dtypes: set[torch.dtype] = set()

    def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.names.add(name)
        self.dtypes |= {a for a in (*args, *kwargs.values()) if isinstance(a, torch.dtype)}
        if name == "load":
            self.dtypes.add(V.graph.get_dtype(args[0]))
        if name == "masked":
            args[1]()
        return _VALUE

    def indirect_indexing(self, *args: Any, **kwargs: Any) -> Any:
        return sympy_index_symbol("tmp0")

    def frexp(self, x: Any) -> tuple[Any, Any]:
        self.names.add("frexp")
        return _VALUE, _VALUE


_VALUE = object()  # what every operation gives


def _loops_of(result: Any) -> Iterator[ir.Loops]:
    for leaf in pytree.tree_leaves(result, is_leaf=lambda x: isinstance(x, ir.TensorBox)):
        data = leaf
        while isinstance(data, (ir.MutableBox, ir.BaseView)):
            data = data.data
        data = getattr(data, "data", data) if isinstance(data, ir.ComputedBuffer) else data
        if isinstance(data, ir.Loops):
            yield data


def why_not(loops: ir.Loops) -> str | None:
    """What kernels lack for a formula, or None."""
    from torch_ocl.inductor.ops import OpenCLOverrides

    device = loops.get_device()
    if device is None or device.type != "ocl":
        return None
    uses = _Uses()
    with V.set_ops_handler(uses), mock.patch.object(ir.FlexibleLayout, "allow_indexing", True):
        loops.inner_fn(*loops.inner_fn_args())
    for name in sorted(uses.names - _OF_KERNELS):
        if OpenCLOverrides._is_unimplemented(name):
            return f"{name} has no formula in OpenCL C"
    for dtype in uses.dtypes | {loops.dtype}:
        if not types.is_known(dtype):
            return f"kernels have no type {dtype}"
        if dtype == torch.float64 and not Target.of(device).has_float64:
            return "the device has no float64"
    return None


def call_function(original: Callable) -> Callable:
    """Replaces GraphLowering.call_function."""

    @functools.wraps(original)
    def call_or_fall_back(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(target, torch._ops.OpOverload):
            return original(self, target, args, kwargs)
        result = original(self, target, args, kwargs)
        reason = next(filter(None, map(why_not, _loops_of(result))), None)
        if reason is None:
            return result
        report.note_call(str(target), reason)
        return fallback_handler(target, add_to_fallback_set=False)(*args, **kwargs)

    return call_or_fall_back
