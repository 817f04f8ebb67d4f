"""The module that replaces ``torch.ocl`` if the adapter could not be loaded: it says why."""

import sys
import types
from typing import Any

import torch


def install(reason: str) -> None:
    """Installs a module as ``torch.ocl`` that has no device and names the reason."""
    module = types.ModuleType("torch.ocl", f"The ocl device could not be loaded: {reason}")

    def missing(name: str) -> Any:
        raise AttributeError(f"torch.ocl.{name} does not exist here: {reason}")

    module.is_available = lambda: False  # type: ignore[attr-defined]
    module.is_built = lambda: False  # type: ignore[attr-defined]
    module.device_count = lambda: 0  # type: ignore[attr-defined]
    module.unavailable_reason = lambda: reason  # type: ignore[attr-defined]
    module.__getattr__ = missing  # type: ignore[method-assign]
    sys.modules["torch.ocl"] = module
    torch.ocl = module  # type: ignore[attr-defined]
