"""diffusers: no float64 on devices without it; group offloading waits for its first transfers."""

from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations._patch import Patch


def torch_utils(library: ModuleType, patch: Patch) -> None:
    """Adds ocl to the devices for which tables of float64 are made in float32."""
    devices = range(torch.ocl.device_count())
    if all(torch.ocl.get_device_properties(i).has_fp64 for i in devices):
        return
    names = library._FP64_UNSUPPORTED_DEVICES | {"ocl"}
    table = {**library._DTYPE_UNSUPPORTED_DEVICES, torch.float64: names}
    patch.set(library, "_FP64_UNSUPPORTED_DEVICES", names)
    patch.set(library, "_DTYPE_UNSUPPORTED_DEVICES", table)


def group_offloading(library: ModuleType, patch: Patch) -> None:
    """With ``use_stream`` a group that loads itself is computed with before its weights arrived."""

    def make(old: Any) -> Any:
        def onload_(self: Any) -> None:
            old(self)
            # Others were loaded ahead by the group before them, and waited for.
            if self.onload_self and self.stream is not None and self.onload_device.type == "ocl":
                torch.ocl.current_stream(self.onload_device).wait_stream(self.stream)

        return onload_

    patch.replace(library.ModuleGroup, "onload_", make)


APPLY = {
    "diffusers.utils.torch_utils": torch_utils,
    "diffusers.hooks.group_offloading": group_offloading,
}
