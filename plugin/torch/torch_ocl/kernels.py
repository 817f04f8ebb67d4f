"""Custom kernels: OpenCL C compiled at run time and launched on tensors.

::

    library = torch.ocl.compile_kernel('''
        __kernel void saxpy(__global float *y, __global const float *x, float a) {
          const size_t i = get_global_id(0);
          y[i] += a * x[i];
        }
    ''')
    library.saxpy(y, x, 2.0)

Launches go to the current stream like any operator, so they can be mixed with tensor code and used
inside ``torch.autograd.Function``. A kernel sees memory, not shapes: pass contiguous tensors, or
their strides as numbers.

A launch that is repeated costs less if it is prepared: ``launch =
library.saxpy.prepare(threads=1024)``, then ``launch(y, x, 2.0)``.

A kernel can report an index that is out of range: with ``#include "ocltensor/faults.h"``, its last
parameters ``FAULT_PARAMETERS``, to which no argument is given, and ``report_fault(faults,
fault_site, index, size)``. The next call that waits raises IndexError with the kernel's name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

import torch

from torch_ocl import _C
from torch_ocl.device import DeviceLike, _index

__all__ = ["Kernel", "KernelLibrary", "compile_kernel", "request_kernels"]

# Format letters of `struct`, by the names that arg_casts accepts.
_CASTS = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "fp16": "e",
    "float16": "e",
    "fp32": "f",
    "float32": "f",
    "fp64": "d",
    "float64": "d",
}
_Argument = torch.Tensor | bool | int | float | Sequence[int] | Sequence[float] | bytes


def _cast(
    arguments: tuple[_Argument, ...], casts: Mapping[int, str] | str
) -> tuple[_Argument, ...]:
    """Numbers with a cast as bytes of that type."""
    values = list(arguments)
    for i, value in enumerate(values):
        cast = casts if isinstance(casts, str) else casts.get(i)
        if cast is None or not isinstance(value, (bool, int, float)):
            continue
        if cast not in _CASTS:
            raise ValueError(
                f"unknown cast {cast!r} of argument {i}; known are {', '.join(_CASTS)}"
            )
        letter = _CASTS[cast]
        try:
            values[i] = struct.pack("<" + letter, value if letter in "efd" else int(value))
        except (struct.error, OverflowError) as error:
            raise ValueError(f"argument {i}: {value!r} is not a value of type {cast}") from error
    return tuple(values)


class Kernel:
    """A kernel of a library; call it to enqueue it on the device's current stream."""

    def __init__(self, library: KernelLibrary, name: str) -> None:
        self._library = library
        self._name = name
        self._info = library._handle.info(name)
        self._enqueue = library._handle.prepare(name, None, None).enqueue

    @property
    def name(self) -> str:
        """The function's name in the source."""
        return self._name

    @property
    def parameter_count(self) -> int:
        """How many parameters the function has."""
        return self._info["parameter_count"]

    @property
    def max_work_group_size(self) -> int:
        """The largest work-group of this kernel that the device can run, in work-items."""
        return self._info["max_work_group_size"]

    @property
    def preferred_work_group_multiple(self) -> int:
        """Work-group sizes should be multiples of this number."""
        return self._info["preferred_work_group_multiple"]

    @property
    def local_memory(self) -> int:
        """Bytes of local memory that a work-group takes."""
        return self._info["local_memory"]

    def __call__(
        self,
        *args: _Argument,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: Mapping[int, str] | str | None = None,
    ) -> None:
        """Enqueues the kernel.

        ``args`` go to the parameters in order. A tensor binds one parameter, a pointer to its first
        element, or two, ``(__global T *base, ulong byte_offset)``, if the kernel has that many; in
        the second form its storage offset may have any value. A number is converted to the
        parameter's type. A list is copied to the device in the type that the parameter points to.
        Bytes are passed by value: a packed structure, or a vector.

        ``threads``: the global size in work-items, one to three dimensions; by default one
        work-item for each element of the first tensor. ``group_size``, the work-group size, must
        divide it; by default the driver chooses.
        ``arg_casts``: types for numbers instead of the parameter's own, by position
        (``{2: "int32"}``) or one for all numbers (``"fp16"``).

        An argument that does not fit its parameter raises RuntimeError, which names it.
        """
        if arg_casts is not None:
            args = _cast(args, arg_casts)
        self._enqueue(args, threads, group_size)

    def prepare(
        self,
        *,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
    ) -> Callable[..., None]:
        """A function that enqueues the kernel with this range: ``launch(y, x, 2.0)``.

        It takes what the kernel takes, by position, and checks it as a call of the kernel does, but
        spends no time on Python objects. Without ``threads`` each call has one work-item for each
        element of its first tensor.
        """
        return self._library._handle.prepare(self._name, threads, group_size)

    def __repr__(self) -> str:
        return f"<kernel {self._name} of {self.parameter_count} parameters>"


class KernelLibrary:
    """Compiled kernels, as attributes: ``library.saxpy``."""

    def __init__(self, handle: _C.KernelLibrary) -> None:
        self._handle = handle
        self._kernels: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._kernels:
            names = self._handle.names()
            if name not in names:
                raise AttributeError(
                    f"the library has no kernel {name!r}; it has: {', '.join(names) or 'none'}"
                )
            self._kernels[name] = Kernel(self, name)
        return self._kernels[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._handle.names()]

    def __repr__(self) -> str:
        return f"<kernels {', '.join(self._handle.names())}>"


def compile_kernel(source: str, *, device: DeviceLike = None, options: str = "") -> KernelLibrary:
    """Compiles OpenCL C for a device (the current one by default); its kernels are the result's
    attributes.

    ``options`` go to the OpenCL compiler, e.g. ``"-D N=4 -cl-fast-relaxed-math"``. A source that
    does not compile raises SyntaxError with the line and the compiler's log. One that was compiled
    before, by this process or an earlier one, is loaded; :func:`request_kernels` has many compiled
    side by side. ``#include "ocltensor/NAME.h"`` includes a header of the kernels that operators
    are made of, such as ``types.h``; these change between versions.
    """
    return KernelLibrary(_C.compile_kernels(_index(device), source, options))


def request_kernels(sources: Sequence[str], *, device: DeviceLike = None, options: str = "") -> int:
    """Has other processes compile OpenCL C sources, side by side, and returns at once with how many
    they will compile: none where there are no such processes (``OCLTENSOR_BUILD_AHEAD=0``, one
    processor, no cache folder), fewer than three sources to compile, or all compiled before.

    :func:`compile_kernel` with the same device and options then loads what they made, or waits for
    what is being made; it reports mistakes in a source.
    """
    return _C.request_kernels(_index(device), list(sources), options)
