"""peft: adapters are loaded to ocl, and those that make tensors themselves make them there."""

from types import ModuleType
from typing import Any

from torch_ocl.integrations import _device
from torch_ocl.integrations._patch import Patch, module


def peft(library: ModuleType, patch: Patch) -> None:
    """Changes the whole library, when ``import peft`` ends."""
    patch.replace(module("peft.utils.other"), "infer_device", infer_device)


def infer_device(old: Any) -> Any:
    def infer_device() -> str:
        found = old()
        return "ocl" if found == "cpu" and _device.chosen() is not None else found

    return infer_device


APPLY = {"peft": peft}
