"""safetensors: ``safe_open(file, "pt", device="ocl")``, and ``load_file`` that uses it."""

from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations._patch import Patch


def safetensors(library: ModuleType, patch: Patch) -> None:
    """Its compiled part knows devices by name, but hands an index on to torch."""

    def make(old: Any) -> Any:
        class Check(type):
            def __instancecheck__(cls, value: Any) -> bool:
                return isinstance(value, old)

        class safe_open(metaclass=Check):
            __doc__ = old.__doc__

            def __new__(
                cls, filename: Any, framework: str, device: Any = "cpu", **rest: Any
            ) -> Any:
                return old(filename, framework, device=_index(device), **rest)

        return safe_open

    patch.replace(library, "safe_open", make)


def _index(device: Any) -> Any:
    """A device of ocl as an index, others as they are."""
    if not (isinstance(device, torch.device) or str(device).partition(":")[0] == "ocl"):
        return device
    device = torch.device(device)
    if device.type != "ocl":
        return device
    index = torch.ocl.current_device() if device.index is None else device.index
    if torch.device(index).type != "ocl":
        raise ValueError("ocl: load on the CPU and use .to('ocl'): another accelerator is current")
    return index


APPLY = {"safetensors": safetensors}
