"""Devices: how many there are, what they can do, and which one is current."""

import dataclasses
import re
from typing import Any, TypeAlias

import torch

from torch_ocl import _C

DeviceLike: TypeAlias = torch.device | str | int | None
"""A device, ``"ocl:1"``, an index, or None for the current device."""

_chosen = False


def _index(device: DeviceLike) -> int:
    """The checked index of a device; the current one for None and for ``"ocl"``."""
    if device is None:
        return _C.current_device()
    if not isinstance(device, int):
        device = torch.device(device)
        if device.type != "ocl":
            raise ValueError(f"expected an ocl device, got '{device}'")
        if device.index is None:
            return _C.current_device()
        device = device.index
    count = device_count()
    if not 0 <= device < count:
        raise RuntimeError(
            f"there is no device ocl:{device}: "
            + (f"there are {count}" if count else _C.unavailable_reason())
        )
    return device


def is_built() -> bool:
    """True: PyTorch has this backend. ``is_available()`` says whether it has a device."""
    return True


def is_available() -> bool:
    """Whether a plugin, a driver and a device exist. Never raises; see ``unavailable_reason()``."""
    return _C.device_count() > 0 and not _C.is_in_bad_fork()


def device_count() -> int:
    """The number of devices; 0 without a driver. Never raises."""
    return _C.device_count()


def is_initialized() -> bool:
    """Whether a device has been used or chosen in this process. PyTorch's meshes choose one for
    processes in which none is."""
    return _C.is_initialized() or (_chosen and not _C.is_in_bad_fork())


def _lazy_init() -> None:
    """What PyTorch calls before it uses a device: RuntimeError with the reason if there is none."""
    global _chosen
    _C.require_device()
    _chosen = True


def init() -> None:
    """Opens the current device if nothing has used it yet. RuntimeError with the reason if none."""
    _lazy_init()
    torch.accelerator.current_stream().query()  # of all calls on a device the cheapest


def _is_in_bad_fork() -> bool:
    """Whether this is a child process whose parent had used the driver before the fork."""
    return _C.is_in_bad_fork()


def current_device() -> int:
    """Index of this thread's current device."""
    return _C.current_device()


def set_device(device: DeviceLike) -> None:
    """Makes a device this thread's current one. A negative index changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    global _chosen
    _C.set_device(_index(device))
    _chosen = True


def synchronize(device: DeviceLike = None) -> None:
    """Waits for all work in all streams of a device.

    If a kernel has failed, RuntimeError is raised here; its text names the kernel.
    """
    _C.synchronize(_index(device))


class device:
    """Context manager that makes a device current, and restores the previous one.

    Args:
        device: a device or an index; None and negative indices change nothing.
    """

    def __init__(self, device: DeviceLike) -> None:
        nothing = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if nothing else _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _C.exchange_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        self.idx = _C.exchange_device(self.prev_idx)


class device_of(device):
    """Context manager that makes the device of a tensor or storage current, if it is on ``ocl``."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "ocl" else None)


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """What a device is and what it can do. Sizes are in bytes."""

    name: str
    vendor: str
    platform: str
    driver_version: str
    language_version: str
    """e.g. ``"OpenCL C 1.2"``"""
    kind: str
    """``"cpu"``, ``"gpu"`` or ``"accelerator"``"""
    total_memory: int
    largest_allocation: int
    local_memory: int
    recommended_memory: int
    """The base of memory fractions and watermarks."""
    compute_units: int
    max_work_group_size: int
    clock_mhz: int
    has_fp64: bool
    has_fp16_arithmetic: bool
    has_unified_memory: bool
    has_subgroups: bool
    has_int64_atomics: bool
    has_float_atomics: bool

    @property
    def multi_processor_count(self) -> int:
        """``compute_units``, by its name in ``torch.cuda``."""
        return self.compute_units


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """The properties of a device."""
    return DeviceProperties(**_C.device_properties(_index(device)))


def get_device_name(device: DeviceLike = None) -> str:
    """The name of a device, as its driver gives it."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """The OpenCL C version of a device as (major, minor)."""
    version = re.search(r"(\d+)\.(\d+)", get_device_properties(device).language_version)
    return (int(version[1]), int(version[2])) if version else (1, 0)


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether a device can read another one's memory. It cannot: OpenCL copies through the host."""
    return _index(device) == _index(peer_device)
