"""Contexts of switches, which nest, work as decorators, and hold for the whole process."""

import contextlib
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch

from torch_ocl import _C

Values = list[tuple[str, str]]


class Scope(contextlib.ContextDecorator):
    """Settings from ``with`` to its end, or for each call of a function that it decorates.

    The values hold for the whole process, including all threads and the autograd engine's. Scopes
    may end in any order: the value in force is that of the open scope that was entered last, and
    the previous value when all have ended. Lists of disabled names add up. An assignment within a
    scope that sets the same switch lasts until the scope ends.
    """

    def __init__(self, values: Callable[[], Values]) -> None:
        self._values = values
        self._open = threading.local()

    def __enter__(self) -> None:
        numbers: list[int] = self._open.__dict__.setdefault("numbers", [])
        numbers.append(_C.enter_settings(self._values()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _C.leave_settings(self._open.numbers.pop())


def assign(name: str, value: str) -> None:
    """Sets one switch; RuntimeError after ``torch.backends.disable_global_flags()``."""
    if torch.backends.flags_frozen():
        raise RuntimeError(
            "not allowed to set torch.backends.ocl flags after disable_global_flags; please use "
            "the flags() context manager instead"
        )
    _C.set_setting(name, value)


def joined(names: Iterable[str]) -> str:
    return ",".join(names)


class BoolSwitch:
    """A property that is a setting of 0 or 1."""

    def __init__(self, setting: str, doc: str) -> None:
        self._setting = setting
        self.__doc__ = doc

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else _C.get_setting(self._setting) == "1"

    def __set__(self, owner: Any, value: bool) -> None:
        assign(self._setting, text_of_bool(self._setting, value))


class IntSwitch:
    """A property that is a setting with a number."""

    def __init__(self, setting: str, doc: str) -> None:
        self._setting = setting
        self.__doc__ = doc

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else int(_C.get_setting(self._setting), 0)

    def __set__(self, owner: Any, value: int) -> None:
        assign(self._setting, str(int(value)))


def text_of_bool(name: str, value: bool) -> str:
    if not isinstance(value, bool):
        raise TypeError(f"{name} expects a bool, but got {type(value)!r}")
    return str(int(value))
