"""How the rows of a reduction lie in work-groups, in GPU style."""

from typing import Any, NamedTuple

import sympy
from torch._inductor.virtualized import V

COLUMNS = 32
"""Columns side by side that a group reads: 64 bytes or more of each row."""
_SHARED = 128
"""Work-items of a group of short rows."""


class GroupShape(NamedTuple):
    rows: int
    """Rows, or columns, of a group."""
    items: int
    """Work-items of each, a power of two."""
    is_column: bool
    """Whether rows lie side by side in memory: neighbouring items then have neighbouring rows."""

    @property
    def size(self) -> int:
        return self.rows * self.items


class Groups:
    """A part of the kernel."""

    is_column = False
    wished_group: int | None = None
    """Work-items of a group where kernels share a launch (combo.py), no less than the kernel's own
    wish: it has more rows then, each of as many items."""

    def note_columns(self, indices: Any) -> None:
        """Whether more accesses run along x than along the reduced axis."""
        trees = {tree.prefix: tree for tree in self.range_trees}
        if "x" not in trees or "r0_" not in trees:
            return
        along = [sum(self._step(i, trees[p]) == 1 for i in indices) for p in ("x", "r0_")]
        elements = V.graph.sizevars.optimization_hint(trees["x"].numel, fallback=COLUMNS)
        self.is_column = along[0] > along[1] and int(elements) >= COLUMNS // 2

    def group_shape(self) -> GroupShape:
        """Of a reduction."""
        hints = V.graph.sizevars.optimization_hint
        elements = max(1, int(hints(self._row_tree().numel, fallback=256)))
        if self.is_column:
            items = max(1, self.target.group // COLUMNS)
            return GroupShape((self.wished_group or self.target.group) // items, items, True)
        items = min(self.target.group, max(2, 1 << (elements - 1).bit_length()))
        size = self.wished_group or max(items, min(self.target.group, _SHARED))
        return GroupShape(size // items, items, False)

    def by_group(self, name: str, value: str, kind: str) -> str:
        """A reduction's end: values of a row's items combined, in local memory of that type, which
        all reductions share."""
        local = (kind, f"group_{kind}")
        if local not in self.locals:
            self.locals.append(local)
        items = self.group_shape().items
        return f"group_{name}({value}, {local[1]}, {items}, row_stride)"

    def group_lines(self, group: str, kind: str) -> list[str]:
        """What an item's row is: `xindex`, its `row_item`-th item, `row_stride` places from one to
        the next. Items of the last group may have none: they read the last row, and store
        nothing. (A loop that they skip is compiled wrongly by PoCL 3.1 within a branch.)"""
        (rows, items, is_column), tree = self.group_shape(), self._x_tree()
        numel, local = self._x_numel(), "(int)get_local_id(0)"
        item, row = f"{local} % {items}", f"{local} / {items}"
        if is_column:
            item, row = f"{local} / {rows}", f"{local} % {rows}"
        lines = [f"const int row_item = {item}, row_stride = {rows if is_column else 1};"]
        at = f"({kind}){group} * {rows} + {row}" if rows > 1 else group
        length = sympy.Integer(1) if tree is None else tree.numel
        if V.graph.sizevars.statically_known_multiple_of(length, rows):
            return [*lines, "const int has_row = 1;", f"const {kind} xindex = {at};"]
        at = at.replace(f"({kind})", "(long)")  # the last group may end beyond an int
        lines.append(f"const long own_x = {at}; const int has_row = own_x < {numel};")
        return [*lines, f"const {kind} xindex = has_row ? ({kind})own_x : ({kind})({numel}) - 1;"]
