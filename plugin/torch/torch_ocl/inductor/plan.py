"""A graph's plan: the lines of its generated Python as steps, which one call of C++ runs.

The text that Inductor keeps in its caches is Python, whose lines are few kinds of statements:
tensors are allocated, viewed and forgotten, sizes computed and checked, operators and kernels
called. Each becomes a step when the code is loaded; a line of another kind stays Python, as a
step that calls it. What is no sequence of lines is no plan: that graph runs in Python.
"""

import ast
import collections
import pathlib
from collections.abc import Callable
from typing import Any

from torch_ocl import _C
from torch_ocl.inductor.plan_lines import Lines
from torch_ocl.inductor.plan_python import NoPlan
from torch_ocl.inductor.report import PlanSummary, report

SETTING = "OCLTENSOR_COMPILE_PLAN"


def planned(call: Callable[..., Any], names: dict[str, Any]) -> Callable[..., Any]:
    """``call`` of a generated module, or what takes its place. ``names``: the module's."""
    if _C.get_setting(SETTING) == "0":
        report.note_plan(f"{SETTING}=0")
        return call
    try:
        lines = Lines(names)
        for statement in _body(names):
            lines.add(statement)
        function = lines.finish(call)
    except NoPlan as why:
        report.note_plan(str(why))
        return call
    report.note_plan(PlanSummary(dict(collections.Counter(lines.kinds)), lines.in_python))
    return function


def _body(names: dict[str, Any]) -> list[ast.stmt]:
    """The statements of the module's function."""
    module = ast.parse(pathlib.Path(names["__file__"]).read_text())
    for node in module.body:
        inner = node.body if isinstance(node, ast.ClassDef) and node.name == "Runner" else [node]
        for function in inner:
            if isinstance(function, ast.FunctionDef) and function.name == "call":
                return function.body
    raise NoPlan("the generated code has no function `call`")
