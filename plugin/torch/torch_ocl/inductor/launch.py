"""A kernel's launch, as a line of the generated Python: its arguments and its range."""

from typing import Any

import sympy
from torch._inductor.virtualized import V


class Launch:
    """A part of the kernel."""

    def has_fixed_range(self) -> bool:
        """Whether every launch has the same range: it is prepared once."""
        return all(isinstance(tree.numel, sympy.Integer) for tree in self.grid_trees())

    def range_text(self, sizes: dict[str, str] | None = None) -> str:
        """``threads, group`` as Python. ``sizes``: texts for the lengths of axes, if they vary."""
        trees = {tree.prefix: tree for tree in self.grid_trees()}
        lengths = sizes or {prefix: int(tree.numel) for prefix, tree in trees.items()}
        axes = "xyz"[: max(("xyz".index(prefix) + 1 for prefix in trees), default=1)]
        threads: list[int | str] = [lengths.get(axis, 1) for axis in axes]
        size = 1 if self.style == "cpu" else self.group()
        if self.style == "cpu":
            threads[0] = _quotient_up(threads[0], self.chunk())
        elif not self.features.is_reduction():
            threads[0] = _times(_quotient_up(threads[0], size), size)
        else:
            threads[0] = _times(_quotient_up(threads[0], self.group_shape().rows), size)
        group = [size] + [1] * (len(threads) - 1)
        return f"({', '.join(map(str, threads))},), ({', '.join(map(str, group))},)"

    def groups(self, group: int | None = None) -> tuple[int, int]:
        """Work-groups along x and y, if they are always the same. ``group``: items of each."""
        trees = {tree.prefix: int(tree.numel) for tree in self.grid_trees()}
        x, y = trees.get("x", 1), trees.get("y", 1)
        if self.style == "cpu":
            return _quotient_up(x, self.chunk()), y
        size = group or self.group()
        if self.features.is_reduction():
            size = self.group_shape().rows
        return _quotient_up(x, size), y

    def _sizes(self, name: str) -> dict[str, str]:
        """The lengths of all axes that are not numbers, and of those that are."""
        sizes = {}
        for tree in self.range_trees:
            expr = tree.numel
            if not isinstance(expr, (sympy.Integer, sympy.Symbol)):
                expr = V.graph.wrapper_code.generate_numel_expr(name, tree).inner
            sizes[tree.prefix] = self.pexpr(expr) if isinstance(expr, sympy.Expr) else str(expr)
        return sizes

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        """Writes the call into the wrapper."""
        for symbol in self.args.sizevars:
            V.graph.wrapper_code.ensure_size_computed(symbol)
        device = V.graph.get_current_device_or_throw()
        (texts, types), sizes = argument_texts(self), self._sizes(name)
        for tree in self.range_trees:
            if not isinstance(tree.numel, sympy.Integer):
                texts.append(sizes[tree.prefix])
                types.append(int)
        if not self.has_fixed_range():
            texts = [f"({', '.join(texts)},)", self.range_text(sizes)]
        V.graph.wrapper_code.generate_kernel_call(
            name, texts, device=device, triton=False, arg_types=types
        )


def argument_texts(kernel: Any) -> tuple[list[str], list[Any]]:
    """A kernel's arguments as Python, and their types."""
    device = V.graph.get_current_device_or_throw()
    _, call_args, arguments, types = kernel.args.python_argdefs()
    texts = []
    for value, argument in zip(call_args, arguments, strict=True):
        text = kernel.pexpr(value) if isinstance(value, sympy.Expr) else str(value)
        # Numbers that Inductor has left on the CPU.
        on_cpu = hasattr(argument, "buffer") and _is_on_cpu(value)
        texts.append(f"{text}.to({str(device)!r})" if on_cpu else text)
    return texts, list(types)


def _is_on_cpu(name: str) -> bool:
    buffer = V.graph.try_get_buffer(name)
    device = None if buffer is None else buffer.get_device()
    return device is not None and device.type == "cpu"


def _quotient_up(length: int | str, divisor: int) -> int | str:
    if isinstance(length, int):
        return -(-length // divisor)
    return f"(({length}) + {divisor - 1}) // {divisor}"


def _times(length: int | str, factor: int) -> int | str:
    return length * factor if isinstance(length, int) else f"({length}) * {factor}"
