"""The loops around a kernel's loads, operations and stores, and the kernel around the loops.

A loop's body is written twice in CPU style, for whole vectors and for the elements that are left:
READ, WRITE and LIVE mean in each what it needs. What a loop over a row has made is kept in a
private array if a later loop over the row reads it, so that nothing is loaded or computed twice.
"""

import functools
from typing import Any

import sympy
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.utils import DelayReplaceLine
from torch._inductor.virtualized import V

from torch_ocl.inductor.preamble import PART, UNDEFINE, WHOLE, preamble
from torch_ocl.inductor.target import KEPT_ROW
from torch_ocl.inductor.types import WIDTH, tag, value_type

CHUNK = 8192
"""Elements of a work-item in CPU style."""
KEPT_VALUES = 8
"""How many values of a row are kept, at most: each is an array of the row's length."""


class Loops:
    """A part of the kernel."""

    # ---- Rows that are kept
    def start_rows(self) -> None:
        self.loop = 0
        self.made: dict[str, int] = {}  # by variable: the loop that makes it
        self.row_values: dict[Any, Any] = {}  # variables of earlier loops, by expression
        self.kept: dict[str, str] = {}  # those that later loops read, and their types
        self.recalled: dict[str, str] = {}  # lines of this loop that read them
        self.stored: set[str] = set()  # pointers whose loads may have become old

    def _keeps_rows(self) -> bool:
        numel = self._row_tree().numel if self.lanes == "r0_" else None
        return isinstance(numel, sympy.Integer) and int(numel) <= KEPT_ROW

    def note(self, var: Any) -> None:
        """A new variable."""
        if not self.inside_reduction:
            self.outer.add(var)
        else:
            self.made[var.name] = self.loop

    def recall(self, key: Any) -> Any:
        """The variable of an earlier loop over this row for an expression, or None."""
        var = self.row_values.get(key) if self.inside_reduction else None
        if var is None or (var.name not in self.kept and len(self.kept) == KEPT_VALUES):
            return None
        if any(pointer in str(key) for pointer in self.stored):
            return None
        kind = self.kept[var.name] = value_type(var.dtype)
        read = f"const {kind} {var.name} = kept_{var.name}[r0_index / {WIDTH}];"
        self.recalled[var.name] = read
        return var

    def _kept_of(self, loop: int) -> str:
        names = [name for name in self.kept if self.made[name] == loop]
        return " ".join(f"kept_{name}[r0_index / {WIDTH}] = {name};" for name in names)

    def _kept_arrays(self) -> str:
        vectors = -(-int(self._row_tree().numel) // WIDTH) if self.kept else 0
        return " ".join(f"{kind} kept_{name}[{vectors}];" for name, kind in self.kept.items())

    # ---- Loops
    def _row_tree(self) -> Any:
        return next(tree for tree in self.range_trees if tree.is_reduction)

    def numel_text(self, tree: Any) -> str:
        is_known = isinstance(tree.numel, sympy.Integer)
        is_written = is_known and (tree.is_reduction or not self.is_member)
        return str(tree.numel) if is_written else f"{tree.prefix}numel"

    def codegen_iteration_ranges_entry(self, entry: Any) -> None:
        index = self.kexpr(self.rename_indexing(entry.expr))
        code = self.row_code if entry.is_reduction else self.indexing_code
        code.writeline(f"const {self.index_dtype} {entry.name} = {index};")

    def _twice(self, body: IndentedBuffer, index: str, end: str, heads: tuple[str, str]) -> None:
        """Into the kernel's body: for whole vectors, and for the elements up to ``end``."""
        for is_part, head in enumerate(heads):
            if is_part and end.isdigit() and int(end) % WIDTH == 0:
                break
            self.body.splice(PART if is_part else WHOLE)
            self.body.writeline(head)
            with self.body.indent():
                if is_part:
                    self.body.writeline(f"const int n = {end} - {index};")
                    self.body.writeline(f"const int{WIDTH} live = {self.lane_numbers('int')} < n;")
                self.body.splice(body)
            self.body.writeline("}")
            self.body.splice(UNDEFINE)

    def codegen_body(self) -> None:
        """Called at each end of a loop over rows, and at the kernel's end."""
        parts = (self.loads, self.compute, self.stores)
        if not any((*parts, self.after)):
            return
        if not (self.features.is_reduction() and self.inside_reduction):
            for buffer in parts:
                self.body.splice(buffer)
                buffer.clear()
            return
        inner = IndentedBuffer()
        for line in self.recalled.values():
            inner.writeline(line)
        for buffer in (self.row_code, *parts):
            inner.splice(buffer)
        if self._keeps_rows():
            keep = functools.partial(self._kept_of, self.loop)  # later loops say what
            inner.writeline(DelayReplaceLine("KEEP", keep, "KEEP"))
        self.body.splice(self.before)
        self._row_loop(inner)
        self.body.splice(self.after)
        for buffer in (self.before, self.row_code, *parts, self.after):
            buffer.clear()
        self._end_loop()

    def _end_loop(self) -> None:
        if self._keeps_rows():
            values = self.cse._cache.items()
            self.row_values.update((k, v) for k, v in values if self.made.get(v.name) == self.loop)
        self.recalled = {}
        self.loop += 1
        self.cse.invalidate(self.outer)
        self._row_tree().cache_clear()

    def _row_loop(self, inner: IndentedBuffer) -> None:
        end, kind = self.numel_text(self._row_tree()), self.index_dtype
        if self.lanes == "r0_":
            self.body.writeline("r0_index = 0;")
            whole = f"for (; r0_index + {WIDTH} <= {end}; r0_index += {WIDTH}) {{"
            self._twice(inner, "r0_index", end, (whole, f"if (r0_index < {end}) {{"))
            return
        start, step = "0", 1
        if self.style == "gpu":
            start, step = "row_item", self.group_shape().items
        head = f"for ({kind} r0_index = {start}; r0_index < {end}; r0_index += {step}) {{"
        self.body.writeline(head)
        with self.body.indent():
            self.body.splice(inner)
        self.body.writeline("}")

    # ---- The kernel
    def grid_trees(self) -> list[Any]:
        return [tree for tree in self.range_trees if not tree.is_reduction]

    def chunk(self) -> int:
        """Elements, or rows, of a work-item in CPU style."""
        if not self.features.is_reduction():
            return CHUNK
        hint = V.graph.sizevars.optimization_hint(self._row_tree().numel, fallback=256)
        rows = max(1, CHUNK // max(1, int(hint)))
        return -(-rows // WIDTH) * WIDTH if self.lanes == "x" else rows

    def group(self) -> int:
        """Work-items of a group in GPU style."""
        return self.group_shape().size if self.features.is_reduction() else self.target.group

    def parameters(self) -> tuple[list[str], list[str]]:
        """The kernel's parameters, and the lines that make pointers of them."""
        definitions, _, arguments, _ = self.args.python_argdefs()
        parameters, lines = [], []
        for definition, argument in zip(definitions, arguments, strict=True):
            name = definition.name
            if not hasattr(argument, "buffer"):
                parameters.append(f"{self.number_type(argument)} {name}")
                continue
            kind = tag(argument.dtype)
            parameters += [f"__global STYPE({kind}) *{name}_base", f"ulong {name}_offset"]
            pointer = f"AT({kind}, {name}_base, {name}_offset)"
            lines.append(f"__global STYPE({kind}) *const {name} = {pointer};")
        for tree in self.range_trees:
            if not isinstance(tree.numel, sympy.Integer):
                parameters.append(f"long {tree.prefix}numel")
        return parameters + ["FAULT_PARAMETERS"] * self.reports_faults, lines

    def number_type(self, argument: Any) -> str:
        """Of a parameter that is no tensor: a size, or a number of Python's."""
        if getattr(argument, "expr", sympy.Integer(0)).is_integer:
            return "long"
        return "double" if self.target.has_float64 else "float"

    def framed(self) -> IndentedBuffer:
        """All of the kernel but its parameters and its local memory."""
        self.codegen_body()
        rows, self.body = self.body, IndentedBuffer()
        inner = IndentedBuffer()
        inner.splice(self.indexing_code)
        inner.splice(rows)
        self._cpu_frame(inner) if self.style == "cpu" else self._gpu_frame(inner)
        code = IndentedBuffer()
        code.writeline(self._kept_arrays())
        for tree in self.grid_trees():
            if tree.prefix != "x":
                at = f"get_global_id({'xyz'.index(tree.prefix)})"
                at = f"{tree.prefix}_group" if self.is_member else at
                code.writeline(f"const {self.index_dtype} {tree.prefix}index = {at};")
        code.splice(self.body)
        return code

    def codegen_kernel(self, name: str | None = None) -> str:
        """The program's text; KERNEL_NAME is where the name comes."""
        framed = self.framed()
        parameters, pointers = self.parameters()
        code = IndentedBuffer()
        group = 1 if self.style == "cpu" else self.group()
        code.writeline(f"__attribute__((reqd_work_group_size({group}, 1, 1)))")
        code.writeline(f"__kernel void KERNEL_NAME({', '.join(parameters)}) {{")
        with code.indent():
            for line in pointers:
                code.writeline(line)
            for kind, local in self.locals:
                code.writeline(f"__local {kind} {local}[{group}];")
            code.splice(framed)
        code.writeline("}")
        text = code.getvalue()
        return preamble(text, self.width > 1, self.combinations, self.moments) + text

    def _x_tree(self) -> Any:
        return next((tree for tree in self.grid_trees() if tree.prefix == "x"), None)

    def _x_numel(self) -> str:
        tree = self._x_tree()
        return "1" if tree is None else self.numel_text(tree)

    def _gpu_frame(self, inner: IndentedBuffer) -> None:
        kind = self.index_dtype
        if self.features.is_reduction():
            group = "x_group" if self.is_member else "get_group_id(0)"
            for line in self.group_lines(group, kind):
                self.body.writeline(line)
        else:
            place = "x_group * get_local_size(0) + get_local_id(0)"
            place = place if self.is_member else "get_global_id(0)"
            self.body.writeline(f"const {kind} xindex = {place};")
            self.body.writeline(f"if (xindex >= {self._x_numel()}) return;")
        self.body.splice(inner)

    def _cpu_frame(self, inner: IndentedBuffer) -> None:
        numel, kind, chunk = self._x_numel(), self.index_dtype, self.chunk()
        if self.lanes == "r0_":
            self.body.writeline(f"{kind} r0_index;")
        place = "x_group" if self.is_member else "get_global_id(0)"
        self.body.writeline(f"{kind} xindex = (long){place} * {chunk};")
        self.body.writeline(f"const {kind} xend = min((long)({numel}), (long)xindex + {chunk});")
        if self.lanes == "x":
            is_whole = numel.isdigit() and int(numel) % WIDTH == 0
            whole = f"for (; xindex + {WIDTH} <= xend; xindex += {WIDTH}) {{"
            end = numel if is_whole else "xend"
            self._twice(inner, "xindex", end, (whole, "if (xindex < xend) {"))
            return
        self.body.writeline("for (; xindex < xend; ++xindex) {")
        with self.body.indent():
            self.body.splice(inner)
        self.body.writeline("}")
