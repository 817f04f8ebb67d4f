"""Changes to a library's functions, which are all made or all undone."""

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any


class Patch:
    """What was changed in one library.

    A function is replaced wherever a module has it under its name: modules that imported it before
    its own module was changed hold the old one.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replaces ``owner.name`` by ``make(old)``. AttributeError if there is none.

        ``owner`` is a module, or a class, of which properties come as they are.
        """
        old = vars(owner)[name] if name in vars(owner) else None
        if old is None:
            raise AttributeError(f"{owner.__name__} has no {name}")
        new = make(old)
        if isinstance(new, types.FunctionType):
            functools.update_wrapper(new, old)
        for holder in [owner, *self._modules_with(owner, name, old)]:
            self.set(holder, name, new)

    def set(self, owner: Any, name: str, new: Any) -> None:
        """Sets an attribute of a class or module, which may be a new one."""
        missing = object()
        old = vars(owner).get(name, missing)
        setattr(owner, name, new)
        if old is missing:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, old))

    def replace_item(self, table: dict[Any, Any], key: Any, make: Callable[[Any], Any]) -> None:
        """Replaces ``table[key]`` by ``make(old)``. KeyError if there is none."""
        old = table[key]
        table[key] = make(old)
        self._undo.append(lambda: table.__setitem__(key, old))

    def add_item(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Sets ``table[key]`` where the library has none."""
        if key not in table:
            table[key] = value
            self._undo.append(lambda: table.pop(key, None))

    def extend_list(self, function: types.FunctionType, member: str, name: str) -> None:
        """Adds a name to the one tuple or set in a function's code that has ``member``.

        For lists of devices inside of a long function: the patch for upstream is the same line.
        ValueError if there is no such list, or more than one.
        """
        code = function.__code__
        found = [
            place
            for place, constant in enumerate(code.co_consts)
            if isinstance(constant, (tuple, frozenset)) and member in constant
        ]
        if len(found) != 1:
            raise ValueError(f"{function.__qualname__} has {len(found)} lists with '{member}'")
        constants = list(code.co_consts)
        old = constants[found[0]]
        constants[found[0]] = type(old)([*old, name])
        function.__code__ = code.replace(co_consts=tuple(constants))
        self._undo.append(lambda: setattr(function, "__code__", code))

    def on_undo(self, action: Callable[[], None]) -> None:
        """What puts a change back that was made in another way."""
        self._undo.append(action)

    def undo(self) -> None:
        """Puts everything back, last change first."""
        while self._undo:
            self._undo.pop()()

    @staticmethod
    def _modules_with(owner: Any, name: str, value: Any) -> list[types.ModuleType]:
        if not isinstance(owner, types.ModuleType):
            return []
        # vars(): modules that import lazily would begin to when asked for an attribute.
        modules = [m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)]
        return [m for m in modules if m is not owner and vars(m).get(name) is value]


def module(name: str) -> types.ModuleType:
    """A module of the library that is being changed; imported where it was not yet."""
    return importlib.import_module(name)


def with_constant(function: types.FunctionType, old: Any, new: Any) -> types.FunctionType:
    """A copy of a function in whose code ``new`` stands for the one constant ``old``.

    For a device's name inside of a long function. ValueError unless the name is there once.
    """
    code = function.__code__
    places = [i for i, constant in enumerate(code.co_consts) if constant == old]
    if len(places) != 1:
        raise ValueError(f"{function.__qualname__} has {len(places)} constants {old!r}")
    constants = list(code.co_consts)
    constants[places[0]] = new
    copy = types.FunctionType(
        code.replace(co_consts=tuple(constants)),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
