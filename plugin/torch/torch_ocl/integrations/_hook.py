"""Calls ``apply`` when a module of the table has been imported, in whatever order.

A module that is there already is changed at once; one that is being imported right now (``import
accelerate`` imports torch, which imports this) when its import ends; others by a finder, which
costs an import of any other module one look into a dictionary. All of it happens under the
module's own import lock, so that no thread sees a module before it is changed.
"""

import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from torch_ocl.integrations._state import apply
from torch_ocl.integrations.table import BY_MODULE


class _Loader(importlib.abc.Loader):
    """A module's own loader, which it gets back before its code runs."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.own
        self.own.exec_module(module)
        apply(module.__name__)


class _Finder(importlib.abc.MetaPathFinder):
    """First in sys.meta_path; lets the others find a module of the table, and wraps its loader."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in BY_MODULE:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Importing(importlib.machinery.ModuleSpec):
    """The specification of a module whose code runs: importlib clears ``_initializing`` after."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_initializing" and not value:
            self.__class__ = importlib.machinery.ModuleSpec  # type: ignore[assignment]
            if self.name in sys.modules:  # else its code has raised
                apply(self.name)
        object.__setattr__(self, name, value)


_installed = threading.Lock()


def install() -> None:
    """Begins to watch imports, once per process."""
    if not _installed.acquire(blocking=False):
        return
    # Before the look at what is there: what is imported between both is seen by the finder.
    sys.meta_path.insert(0, _Finder())
    for name in BY_MODULE:
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if module is None:
            continue
        if getattr(spec, "_initializing", False) and type(spec) is importlib.machinery.ModuleSpec:
            spec.__class__ = _Importing
        else:
            apply(name)
