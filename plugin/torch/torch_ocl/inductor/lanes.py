"""The axis that a kernel's vectors run along, chosen from all of its indices."""

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
from torch._inductor.utils import sympy_subs
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, ModularIndexing
from torch.utils._sympy.symbol import SymT, symbol_is_type

from torch_ocl.inductor.ops import SCALAR_IN_FLOAT64, SCALAR_ONLY
from torch_ocl.inductor.types import WIDTH


def _inside_a_vector(index: sympy.Expr, symbols: Mapping[sympy.Symbol, Any]) -> sympy.Expr:
    """An index that grows from lane to lane as the given one does. ``symbols`` begin at multiples
    of 16: their quotients by such multiples stay the same, their remainders grow as they do."""
    is_multiple = V.graph.sizevars.statically_known_multiple_of

    def is_ours(part: sympy.Expr) -> bool:
        return isinstance(part, (ModularIndexing, FloorDiv)) and part.args[0] in symbols

    def grows_as(part: sympy.Expr) -> sympy.Expr:
        x, divisor, *modulus = part.args
        if is_multiple(divisor, WIDTH):
            return sympy.Dummy("quotient", integer=True)
        return x if modulus and divisor == 1 and is_multiple(modulus[0], WIDTH) else part

    return index.replace(is_ours, grows_as)


class Lanes:
    """A part of the kernel. ``lanes`` is the prefix of a tree of iteration ranges: ``x`` (elements,
    or columns side by side), ``r0_`` (along a row), or None for one value at a time."""

    lanes: str | None = None
    width = 1

    def finalize_indexing(self, indices: Sequence[sympy.Expr]) -> None:
        """SIMDScheduling calls it with every index before any code is made."""
        self.simplify_indexing.cache_clear()
        if self.style == "gpu":
            self.note_columns([self.simplify_indexing(index) for index in indices])
            for tree in self.range_trees:  # entries are made again, in the order of their use
                tree.cache_clear()
            return
        if not self._holds_for_vectors():
            return
        indices = [self.simplify_indexing(index) for index in indices]
        for tree in reversed(self.range_trees):
            if tree.prefix in ("x", "r0_") and self._fits(tree, indices):
                self.lanes, self.width = tree.prefix, WIDTH
                break
        for tree in self.range_trees:  # entries are made again, in the order of their use
            tree.cache_clear()

    def _holds_for_vectors(self) -> bool:
        nodes = list(self.features.scheduler_nodes())
        alone = set(SCALAR_ONLY)
        if self.computes_float64():
            alone |= SCALAR_IN_FLOAT64
        if any(node._body.has_op(name) for node in nodes for name in alone):
            return False
        reduced = (n.node.get_reduction_type() for n in nodes if n.is_reduction())
        return not any("arg" in kind for kind in reduced)

    def _fits(self, tree: Any, indices: Sequence[sympy.Expr]) -> bool:
        """Whether each index stays or grows by 1 from lane to lane, and one of them grows."""
        steps = [self._step(index, tree) for index in indices]
        elements = V.graph.sizevars.optimization_hint(tree.numel, fallback=WIDTH)
        return None not in steps and 1 in steps and elements >= WIDTH

    def _step(self, index: sympy.Expr, tree: Any) -> int | None:
        """By how much an index grows from lane to lane: 0, 1, or None for anything else."""
        next_lane = {}
        is_multiple = V.graph.sizevars.statically_known_multiple_of
        for symbol in index.free_symbols:
            if symbol_is_type(symbol, (SymT.INDIRECT, SymT.TMP)):
                return None
            entry = self.range_tree_nodes.get(symbol)
            if entry is None or entry.root is not tree:
                continue
            if entry.divisor == 1:
                if entry.length != tree.numel and not is_multiple(entry.length, WIDTH):
                    return None
                next_lane[symbol] = symbol + 1
            elif not is_multiple(entry.divisor, WIDTH):
                return None
        if not next_lane:
            return 0
        index = _inside_a_vector(index, next_lane)
        step = sympy.expand(sympy_subs(index, next_lane) - index)
        return int(step) if step in (0, 1) else None

    def lane_step(self, index: sympy.Expr) -> int | None:
        """The step along the chosen axis."""
        tree = next(tree for tree in self.range_trees if tree.prefix == self.lanes)
        return self._step(index, tree)

    def lane_numbers(self, kind: str) -> str:
        """``(int16)(0, 1, ..)``"""
        return f"({kind}{WIDTH})({', '.join(map(str, range(WIDTH)))})"
