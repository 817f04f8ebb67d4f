"""Random numbers: one Philox generator per device, its seed and its state.

The same seed gives the same numbers on every OpenCL device.
"""

from collections.abc import Iterable

import torch

from torch_ocl import _C
from torch_ocl.device import DeviceLike, _index, device_count, is_available


def _generator(device: DeviceLike) -> torch.Generator:
    return _C.default_generator(_index(device))


def get_rng_state(device: DeviceLike = "ocl") -> torch.Tensor:
    """The state of a device's generator: 16 bytes on the CPU, seed and offset."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of the generators of all devices."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "ocl") -> None:
    """Sets the state of a device's generator to one that ``get_rng_state`` returned.

    TypeError for anything but a byte tensor, RuntimeError for a wrong size.
    """
    # Not always: modes of tensors without data (FakeTensorMode) take no copy of one that has.
    if isinstance(new_state, torch.Tensor) and not new_state.is_contiguous():
        new_state = new_state.clone(memory_format=torch.contiguous_format)
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of the generators of all devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator. Does nothing if there is no device."""
    if is_available():
        _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices, including those not used yet; opens no device."""
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"a seed is from -2**63 to 2**64 - 1, got {seed}")
    _C.seed_all(seed % 2**64)


def seed() -> int:
    """Seeds the current device's generator at random; returns the seed."""
    return _generator(None).seed()


def seed_all() -> int:
    """Seeds the generators of all devices with one random seed; returns it."""
    value = torch.Generator().seed()
    _C.seed_all(value)
    return value


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()
