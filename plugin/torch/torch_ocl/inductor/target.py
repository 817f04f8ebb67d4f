"""What generated code has to know of a device."""

import dataclasses
import functools
import hashlib
import pathlib

import torch

import torch_ocl
from torch_ocl import _C, __version__

FORMULAS = pathlib.Path(torch_ocl.__file__).parent / "share" / "expressions.def"

KEPT_ROW = 4096
"""The longest row whose values a kernel keeps, in CPU style (loops.py)."""


@dataclasses.dataclass(frozen=True)
class Target:
    style: str
    """How kernels are written, ``cpu`` or ``gpu``."""
    has_float64: bool
    group: int
    """Work-items of a group, at most, in GPU style; a power of two."""
    units: int
    """Compute units."""
    tensors: int
    """Parameters of a kernel that are tensors, at most, each of 16 bytes."""
    driver: str
    """Name, platform and version, for messages and for the keys of caches."""

    @staticmethod
    def of(device: torch.device) -> "Target":
        wished = (_C.get_setting("OCLTENSOR_KERNEL_STYLE"), _C.get_setting("OCLTENSOR_FLOAT64"))
        index = torch.ocl.current_device() if device.index is None else device.index
        return _target(index, *wished)


@functools.cache
def _target(index: int, style: str, float64: str) -> Target:
    device = torch.ocl.get_device_properties(index)
    return Target(
        style=style or ("cpu" if device.kind == "cpu" else "gpu"),
        has_float64=device.has_fp64 and float64 != "0",
        group=_power_of_two(min(256, device.max_work_group_size)),
        units=device.compute_units,
        tensors=_LARGE_KERNEL if _takes_many_parameters(device) else _SMALL_KERNEL,
        driver=f"{device.name} ({device.platform}, {device.driver_version})",
    )


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


_SMALL_KERNEL = 48
"""Tensors of 16 bytes in the 1,024 of parameters that every driver takes, with 30 numbers."""
_LARGE_KERNEL = 250
"""In the 4,352 bytes that NVIDIA takes. CPU drivers have no limit, though they name one."""


def _takes_many_parameters(device: torch.ocl.DeviceProperties) -> bool:
    return device.kind == "cpu" or "NVIDIA" in device.vendor


@functools.cache
def _sources() -> str:
    """A digest of these files and of the formulas, as PyTorch has of its own: a version is longer
    than a change."""
    files = [*sorted(pathlib.Path(__file__).parent.glob("*.py")), FORMULAS]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def identity() -> str:
    """All devices and this version, for the keys of Inductor's caches: what is made for one driver
    or style is of no use to another."""
    count = torch.ocl.device_count()
    targets = [Target.of(torch.device("ocl", index)) for index in range(count)]
    checks = _C.get_setting("OCLTENSOR_CHECK_VALUES")
    return f"ocl {__version__} {_sources()} {targets} {checks}"
