"""Integers of generated Python as programs of a plan: what a stack does, one operation after
another."""

import ast
from collections.abc import Mapping

_OPERATIONS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_LARGEST = 1 << 63


class NoNumber(Exception):
    """An expression that programs do not have."""


def program(value: ast.expr, places: Mapping[str, int]) -> list[tuple[str, int]]:
    """``places``: of the names that have a value."""
    match value:
        case ast.Constant(int(number)) if type(number) is int and number < _LARGEST:
            return [("constant", number)]
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))) if (
            type(number) is int and number < _LARGEST
        ):
            return [("constant", -number)]
        case ast.Name(name) if name in places:
            return [("value", places[name])]
        case ast.UnaryOp(ast.USub(), operand):
            return [*program(operand, places), ("negate", 0)]
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATIONS:
            texts = program(left, places), program(right, places)
            return [*texts[0], *texts[1], (_OPERATIONS[type(operator)], 0)]
        case ast.Call(ast.Name("min" | "max" as name), [first, *rest], []) if rest:
            text = program(first, places)
            for other in rest:
                text += [*program(other, places), (name, 0)]
            return text
    raise NoNumber
