"""What generated Python calls: the kernels of a graph, compiled when its code is loaded."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from torch_ocl import _C
from torch_ocl.kernels import request_kernels


class KernelRefused(RuntimeError):
    """A driver does not compile a kernel."""


@dataclasses.dataclass
class _Kernel:
    device: int
    name: str
    source: str
    range: tuple[Sequence[int], Sequence[int]] | None

    def compiled(self) -> Callable[..., None]:
        """The prepared launch, or for a range that varies a function of arguments and range."""
        try:
            library = _C.compile_kernels(self.device, self.source, "")
        except (SyntaxError, RuntimeError) as error:
            raise KernelRefused(self._refusal(error)) from error
        threads, group = self.range or (None, None)
        prepared = library.prepare(self.name, threads, group)
        return prepared.enqueue if self.range is None else prepared

    def _refusal(self, error: Exception) -> str:
        from torch_ocl.device import get_device_properties

        device = get_device_properties(self.device)
        driver = f"{device.name} ({device.platform}, {device.driver_version})"
        return f"kernel {self.name} does not compile on ocl:{self.device}, {driver}: {error}"


class Kernels:
    """Programs are found in the plugin's cache, on disk, too; what is missing is compiled by the
    builder processes side by side."""

    def __init__(self) -> None:
        self._kernels: list[_Kernel] = []

    def define(self, device: int, name: str, source: str, *launch_range: Sequence[int]) -> None:
        """``launch_range``: work-items and work-items of a group, if they are always the same."""
        self._kernels.append(_Kernel(device, name, source, launch_range or None))  # type: ignore[arg-type]

    def compile(self, names: dict[str, Any]) -> None:
        """Puts a function for each kernel into the names of the generated module."""
        for device in {kernel.device for kernel in self._kernels}:
            request_kernels([k.source for k in self._kernels if k.device == device], device=device)
        names.update((kernel.name, kernel.compiled()) for kernel in self._kernels)

    def plan(self, names: dict[str, Any]) -> None:
        """Puts the plan of the generated module's function in its place."""
        from torch_ocl.inductor.plan import planned

        names["call"] = planned(names["call"], names)
