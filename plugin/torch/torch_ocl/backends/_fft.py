"""The plan cache of Fourier transforms, which is always empty."""

from typing import Any

from torch_ocl.device import DeviceLike, _index


class FftPlanCache:
    """The plans of one device: none, because the kernels take any length without one."""

    def __init__(self, index: int) -> None:
        self._index = index

    @property
    def size(self) -> int:
        """The number of plans that are kept: 0."""
        return 0

    @property
    def max_size(self) -> int:
        """The number of plans that may be kept: 0. Setting another number raises RuntimeError."""
        return 0

    @max_size.setter
    def max_size(self, value: int) -> None:
        if value != 0:
            raise RuntimeError(
                "Fourier transforms on ocl have no plans that could be kept: max_size is 0"
            )

    def clear(self) -> None:
        """Does nothing, as there are no plans."""


class FftPlanCacheManager:
    """``fft_plan_cache`` of the current device, ``fft_plan_cache[i]`` of device i."""

    def __getitem__(self, device: DeviceLike) -> FftPlanCache:
        return FftPlanCache(_index(device))

    def __getattr__(self, name: str) -> Any:
        return getattr(self[None], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self[None], name, value)
