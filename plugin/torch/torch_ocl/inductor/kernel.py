"""One kernel for a group of fused nodes, as OpenCL C in the device's style.

gpu
    A work-item an element; a reduced row, or several short ones, or columns side by side, are a
    work-group's, which ends each reduction in local memory (groups.py).
cpu
    A work-item some thousand elements, or rows, in loops over vectors of 16 along one axis
    (lanes.py); ends of rows load and store lane by lane. Where the indices fit no axis, the loops
    take one element at a time.

A kernel's parts: loads and stores here, reductions.py, the loops around them loops.py, its launch
launch.py.
"""

import itertools
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import CSE, DeferredLine, IndentedBuffer, PythonPrinter
from torch._inductor.codegen.simd import SIMDKernel
from torch._inductor.dependencies import MemoryDep
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from torch_ocl.inductor import types
from torch_ocl.inductor.groups import Groups
from torch_ocl.inductor.lanes import Lanes
from torch_ocl.inductor.launch import Launch
from torch_ocl.inductor.loops import Loops
from torch_ocl.inductor.ops import OpenCLOverrides
from torch_ocl.inductor.printer import OpenCLPrinter
from torch_ocl.inductor.reductions import Reductions
from torch_ocl.inductor.target import Target
from torch_ocl.inductor.types import cast, computed, value_type


class TypedCSE(CSE):
    """Declares variables with their types, for OpenCL C has no ``auto``."""

    def generate(self, buffer: Any, expr: Any, *, dtype: Any = None, **options: Any) -> Any:
        if options.get("assignment", True) and isinstance(expr, str):
            if dtype is None:
                raise NotImplementedError(f"a value without a type: {expr}")
            self.prefix = f"const {value_type(dtype)} "
        return super().generate(buffer, expr, dtype=dtype, **options)

    def try_get(self, cache_key: Any) -> Any:
        var = super().try_get(cache_key)
        return V.kernel.recall(self.augment_key(cache_key)) if var is None else var

    def newvar(self, *args: Any, **options: Any) -> Any:
        var = super().newvar(*args, **options)
        V.kernel.note(var)
        return var


class OpenCLKernel(Lanes, Groups, Reductions, Loops, Launch, SIMDKernel):
    overrides = OpenCLOverrides  # type: ignore[assignment]
    suffix = ";"
    pexpr: Callable[[sympy.Expr], str] = PythonPrinter().doprint

    def __init__(self, tiling: dict[str, sympy.Expr], **options: Any) -> None:
        super().__init__(tiling, **options)
        self.cse = TypedCSE(self.newvar_prefix, self.suffix)
        self.target = Target.of(V.graph.get_current_device_or_throw())
        self.style = self.target.style
        self.kexpr = self.sexpr = OpenCLPrinter(self.target.has_float64).doprint
        self.outer: OrderedSet[Any] = OrderedSet()  # variables that live outside of loops
        self.accumulators = itertools.count()
        self.before, self.after, self.row_code = (IndentedBuffer() for _ in range(3))
        self.locals: list[tuple[str, str]] = []  # arrays in local memory: types and names
        self.is_member = False  # of several kernels in one launch (combo.py)
        self.combinations, self.moments = set(), set()
        self.reports_faults = False
        self.start_rows()

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return types.scalar(dtype)

    def computes_float64(self) -> bool:
        """Whether any tensor that the kernel loads or stores is float64."""
        found = (node.read_writes.reads_and_writes() for node in self.features.scheduler_nodes())
        names = {dep.name for deps in found for dep in deps if isinstance(dep, MemoryDep)}
        return any(V.graph.get_dtype(name) == torch.float64 for name in names)

    # ---- Loads and stores
    def load(self, name: str, index: sympy.Expr) -> Any:
        pointer, index = self.args.input(name), self.prepare_indexing(index)
        dtype, at = V.graph.get_dtype(name), self.index_to_str(index)
        as_vector = self.width > 1 and self.lane_step(index) == 1
        read = f"({types.tag(dtype)}, {pointer}, {at})"
        text = f"READ{read}" if as_vector else f"LOAD{read}"
        buffer = self.loads
        if self.width > 1 and self._load_mask:
            kind, buffer = "READ_WHERE" if as_vector else "LOAD_WHERE", self.compute
            text = f"{kind}({types.tag(dtype)}, {pointer}, {at}, {self._load_mask})"
        if dtype == torch.bool:
            text = f"(-convert_int{self.width}({text}))" if as_vector else f"(-(int){text})"
        if self.width > 1 and not as_vector:
            text = f"({value_type(dtype)})({text})"
        return self.cse.generate(buffer, text, dtype=computed(dtype))

    def store(self, name: str, index: sympy.Expr, value: Any, mode: Any = None) -> None:
        self.stores.writeline(self._store_line(name, index, value, mode))

    def store_reduction(self, name: str, index: sympy.Expr, value: Any) -> None:
        self.inside_reduction = False
        try:
            self.after.writeline(self._store_line(name, index, value))
        finally:
            self.inside_reduction = True

    def _store_line(self, name: str, index: sympy.Expr, value: Any, mode: Any = None) -> Any:
        if mode is not None:
            raise NotImplementedError(f"store mode {mode}")
        pointer, index = self.args.output(name), self.prepare_indexing(index)
        self.stored.add(pointer)
        dtype = V.graph.get_dtype(name)
        at, value = self.index_to_str(index), cast(value, value.dtype, dtype)
        as_vector = self.width > 1 and self.lane_step(index) == 1
        if self.width > 1 and not as_vector:
            value = f"({value}).s0"
        if dtype == torch.bool:
            value = f"{'convert_uchar16' if as_vector else '(uchar)'}({value} & 1)"
        kind = "WRITE" if as_vector else "STORE"
        line = f"{kind}({types.tag(dtype)}, {pointer}, {at}, {value});"
        if self.style == "gpu" and self.features.is_reduction():
            owns = "has_row" if self.inside_reduction else "(row_item == 0) & has_row"
            line = f"if ({owns}) {line}"
        return DeferredLine(name, line)

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        """The index has been checked where it was made (ops.py: indirect_indexing)."""
