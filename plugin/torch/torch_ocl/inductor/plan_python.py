"""Lines of generated Python that stay Python in a plan, as functions of the values they read."""

import ast
from collections.abc import Callable
from typing import Any

_FORBIDDEN = (
    ast.Return,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Delete,
    ast.NamedExpr,
    ast.Lambda,
    ast.comprehension,
    ast.Global,
    ast.FunctionDef,
)


class NoPlan(Exception):
    """Why a graph has none."""


def shown(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


def names_in(node: ast.AST) -> list[str]:
    """Without those that are assigned alone, each once."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return sorted({name.id for name in names if not isinstance(name.ctx, ast.Store)})


def written_names(statement: ast.stmt) -> list[str]:
    """What a statement assigns. NoPlan if it does other things with names, or not always."""
    nodes = list(ast.walk(statement))
    writes = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    is_simple = isinstance(statement, (ast.Assign, ast.Expr, ast.Assert))
    is_check = isinstance(statement, ast.If) and not writes
    if (
        not (is_simple or is_check)
        or any(isinstance(n, _FORBIDDEN) for n in nodes)
        or {"args", "self"} & set(names_in(statement))
    ):
        raise NoPlan(f"no step for: {shown(statement)}")
    return sorted(writes)


def function_of(
    reads: list[str], body: str, result: str, names: dict[str, Any]
) -> Callable[..., Any]:
    """Of the values of ``reads``; other names are looked up in the module as it then is."""
    lines = [f"def line({', '.join(reads)}):", *(f"    {line}" for line in body.splitlines())]
    made: dict[str, Any] = {}
    text = "\n".join([*lines, f"    return {result}"])
    exec(compile(text, str(names["__file__"]), "exec"), names, made)
    return made["line"]
