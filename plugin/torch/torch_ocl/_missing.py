"""The module that replaces ``torch.ocl`` where ``ocl`` is not registered: it says why."""

import sys
import types
from typing import Any

import torch


def install(reason: str) -> None:
    """Installs a module as ``torch.ocl`` that has no device and names the reason."""
    module = types.ModuleType("torch.ocl", f"The ocl device is not registered: {reason}")

    def missing(name: str) -> Any:
        raise AttributeError(f"torch.ocl.{name} does not exist here: {reason}")

    module.is_available = lambda: False  # type: ignore[attr-defined]
    module.is_built = lambda: False  # type: ignore[attr-defined]
    module.device_count = lambda: 0  # type: ignore[attr-defined]
    module.unavailable_reason = lambda: reason  # type: ignore[attr-defined]
    module.__getattr__ = missing  # type: ignore[method-assign]
    module._is_missing = True  # type: ignore[attr-defined]
    sys.modules["torch.ocl"] = module
    torch.ocl = module  # type: ignore[attr-defined]


def remove() -> None:
    """Makes room for the real module, if this one was installed."""
    if getattr(sys.modules.get("torch.ocl"), "_is_missing", False):
        del sys.modules["torch.ocl"], torch.ocl  # type: ignore[attr-defined]
