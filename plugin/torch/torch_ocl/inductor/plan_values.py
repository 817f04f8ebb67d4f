"""The values of a plan while it is made: their places, what they are called, and expressions."""

import ast
from collections.abc import Callable
from typing import Any

import torch

from torch_ocl import _C
from torch_ocl.inductor.plan_numbers import NoNumber, program
from torch_ocl.inductor.plan_python import function_of, names_in


class NoStep(Exception):
    """A line that only Python can run."""


class Values:
    """Names of generated Python, each a place of its own in the plan for each value it has."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.plan = _C.Plan()
        self.names = names  # of the module
        self.kinds: list[str] = []  # of the steps
        self.in_python: list[str] = []
        self.places: dict[str, int] = {}  # of the names that have a value
        self.several: set[str] = set()  # names of what an operator returned several of
        self._count = 0
        self._temporaries: list[int] = []  # of a statement
        self._globals: dict[str, int] = {}

    def assign(self, name: str, value: ast.expr) -> None:
        """A statement of Python. NoStep if there is no step for it."""
        raise NotImplementedError

    # ---- Steps
    def step(self, kind: str, *arguments: Any) -> None:
        getattr(self.plan, kind)(*arguments)
        self.kinds.append(kind)

    def remember(self) -> tuple[Any, ...]:
        """What ``restore`` takes."""
        lengths = len(self.plan), len(self.kinds), len(self.in_python)
        return *lengths, dict(self.places), set(self.several)

    def restore(self, remembered: tuple[Any, ...]) -> None:
        """Forgets the steps since then."""
        steps, kinds, in_python, self.places, self.several = remembered
        self.plan.cut(steps)
        del self.kinds[kinds:], self.in_python[in_python:]
        self._temporaries = []

    def finished(self, call: Callable[..., Any]) -> Callable[..., Any]:
        self.plan.look_up(self.names, list(self._globals.items()))
        return self.plan.finish(self._count, call)

    # ---- Places
    def new(self) -> int:
        self._count += 1
        return self._count - 1

    def define(self, name: str) -> int:
        """What had the name until now is released after the statement, which may read it."""
        if name in self.places:
            self._temporaries.append(self.places[name])
        self.several.discard(name)
        self.places[name] = self.new()
        return self.places[name]

    def copy(self, name: str, other: str) -> None:
        place, are_several = self.places[other], other in self.several
        self.step("copy", self.define(name), place)
        if are_several:
            self.several.add(name)

    def free(self, names: list[str]) -> None:
        if not all(name in self.places for name in names):
            raise NoStep
        self.step("free", [self.places.pop(name) for name in names])
        self.several -= set(names)

    def release_temporaries(self) -> None:
        if self._temporaries:
            self.plan.free(self._temporaries)
            self._temporaries = []

    # ---- Expressions
    def _is_global(self, name: str) -> bool:
        """Constants are None in the text, and given to the module after it is loaded."""
        known = name in self.names
        return known and isinstance(self.names[name], (torch.Tensor, type(None)))

    def varies(self, value: ast.expr) -> bool:
        """Whether it depends on the call, or on what the module is given later."""
        return any(name in self.places or self._is_global(name) for name in names_in(value))

    def constant(self, value: ast.expr) -> Any:
        """What never varies, a function above all."""
        if self.varies(value):
            raise NoStep
        return eval(compile(ast.Expression(value), "<plan>", "eval"), self.names)

    def place(self, value: ast.expr) -> int:
        """Of a value, which a step makes if it has no name."""
        match value:
            case ast.Name(name) if name in self.places:
                return self.places[name]
            case ast.Name(name) if self._is_global(name):
                if name not in self._globals:
                    self._globals[name] = self.new()
                return self._globals[name]
            case ast.Call():
                return self._nested(value)
        place = self.new()
        self.step("compute", place, self.number(value))
        return place

    def _nested(self, call: ast.Call) -> int:
        name = f" {self._count}"  # that Python has no name like
        before = self.remember()
        temporaries = list(self._temporaries)
        try:
            self.assign(name, call)
        except NoStep:
            self.restore(before)
            self._temporaries = temporaries
            return self._by_python(call)
        self.several.discard(name)
        self._temporaries.append(self.places[name])
        return self.places.pop(name)

    def _by_python(self, value: ast.expr) -> int:
        place, text = self.new(), ast.unparse(value)
        reads = [name for name in names_in(value) if name in self.places]
        function = function_of(reads, "", f"({text},)", self.names)
        self.step("python", function, [self.places[name] for name in reads], [place])
        self.in_python.append(text)
        self._temporaries.append(place)
        return place

    def numbers(self, value: ast.expr) -> list[list[tuple[str, int]]]:
        if not isinstance(value, (ast.Tuple, ast.List)):
            raise NoStep
        return [self.number(part) for part in value.elts]

    def number(self, value: ast.expr, by_python: bool = True) -> list[tuple[str, int]]:
        """A program. Python may compute what programs lack."""
        try:
            return program(value, self.places)
        except NoNumber:
            if not by_python:
                raise NoStep from None
        return [("value", self._by_python(value))]
