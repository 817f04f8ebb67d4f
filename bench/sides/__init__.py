"""Contestants as they are inside their worker process; SIDES maps a kind's name to its module's
class, imported late."""

from __future__ import annotations

import importlib
from typing import Any

SIDES = {
    "plugin": ("plugin", "PluginSide"),
    "driver": ("plugin", "DriverSide"),
    "torch": ("torch_side", "TorchSide"),
    "openblas": ("blas", "OpenBlasSide"),
    "clblast": ("clblast", "ClblastSide"),
    "dlprimitives": ("dlprimitives", "DlprimitivesSide"),
    "launch": ("launch", "LaunchSide"),
}


def make(kind: str, options: Any) -> Any:
    module, name = SIDES[kind]
    return getattr(importlib.import_module(f"sides.{module}"), name)(options)
