"""Matrix products: permissions for less precise sums, and the preferred libraries."""

from typing import Any

from torch_ocl import _C
from torch_ocl.backends._providers import provider_rows
from torch_ocl.backends._scope import BoolSwitch, assign

FP16 = "OCLTENSOR_FP16_REDUCTION"
BF16 = "OCLTENSOR_BF16_REDUCTION"


def reduction_text(value: Any, name: str) -> str:
    """The setting for ``bool`` or ``(allow_reduced_precision, allow_split_k)``."""
    parts = (value, True) if isinstance(value, bool) else value
    if not isinstance(parts, (tuple, list)) or not 1 <= len(parts) <= 2:
        raise TypeError(f"{name} expects a bool or a tuple of one or two bools, but got {value!r}")
    if not all(isinstance(part, bool) for part in parts):
        raise TypeError(f"{name} expects bools, but got {value!r}")
    reduced, split = parts[0], parts[1] if len(parts) == 2 else True
    return str(int(reduced) + 2 * int(split))


class _Reduction:
    def __init__(self, setting: str, bit: int, doc: str) -> None:
        self._setting = setting
        self._bit = bit
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else bool(int(_C.get_setting(self._setting)) & self._bit)

    def __set__(self, owner: Any, value: Any) -> None:
        if self._bit != 1:
            raise AttributeError(
                f"{self._name} is set together with what may be reduced: assign (bool, bool) to "
                f"{self._name.removesuffix('_split_k')}"
            )
        assign(self._setting, reduction_text(value, self._name))


class MatmulModule:
    """``torch.backends.ocl.matmul``, as ``torch.backends.cuda.matmul``.

    Sums of 16-bit products are kept in float32. ``allow_*_reduced_precision_reduction = True``
    permits partial sums in the 16-bit type, which lets the algorithm ``matmul.split_k`` cut few
    long sums into pieces; ``= (True, False)`` permits the rounding but not the cutting (split-K).
    The default is ``(False, True)``, not CUDA's ``(True, True)``.
    """

    allow_tf32 = BoolSwitch(
        "OCLTENSOR_ALLOW_TF32",
        "Whether float32 products may be computed in TF32 (10 bits of each factor), as NVIDIA's "
        "matrix units can. On other devices nothing changes: with ``verbose(1)`` each product says "
        "'tf32 allowed, no provider offers it'.",
    )
    allow_int8_activations = BoolSwitch(
        "OCLTENSOR_ALLOW_INT8_ACTIVATIONS",
        "Whether products of up to 8 rows with quantised weights may round the other factor to 8 "
        "bits, with a scale for each 32 elements, as llama.cpp does. Kernels that multiply bytes "
        "faster than floats then do; other devices and formats compute as before. Rows with NaN "
        "or infinities are not rounded.",
    )
    allow_fp16_reduced_precision_reduction = _Reduction(
        FP16, 1, "Whether partial sums of float16 products may be float16."
    )
    allow_fp16_reduced_precision_reduction_split_k = _Reduction(
        FP16, 2, "Whether sums of float16 products may be split; read-only."
    )
    allow_bf16_reduced_precision_reduction = _Reduction(
        BF16, 1, "Whether partial sums of bfloat16 products may be bfloat16."
    )
    allow_bf16_reduced_precision_reduction_split_k = _Reduction(
        BF16, 2, "Whether sums of bfloat16 products may be split; read-only."
    )

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"torch.backends.ocl.matmul has no switch {name!r}")
        super().__setattr__(name, value)


def preferred_blas_library(backend: str | None = None) -> str:
    """The library for matrix products: returns the preferred one; an argument sets it.

    ``"default"`` uses matrix units if a provider has them; ``"portable"`` the kernels in OpenCL C
    (``OCLTENSOR_PREFER_OPENCL=1``). ``"matrix_unit"`` raises RuntimeError, with the reason, if no
    provider has matrix units for the devices.
    """
    if backend is not None:
        rows = [row for row in provider_rows() if row.library]
        libraries = sorted({row.library for row in rows})
        if backend not in ("default", *libraries):
            names = ", ".join(["default", *libraries])
            raise RuntimeError(f"Unknown input value {backend!r}. Choose from: {names}.")
        rows = [row for row in rows if row.library == backend]
        if rows and not any(row.available for row in rows):
            reasons = "; ".join(row.missing for row in rows)
            raise RuntimeError(f"Cannot set preferred BLAS library to {backend!r}: {reasons}.")
        assign("OCLTENSOR_PREFER_OPENCL", str(int(backend == "portable")))
    return "portable" if _C.get_setting("OCLTENSOR_PREFER_OPENCL") == "1" else "default"


def preferred_linalg_library(backend: str | None = None) -> str:
    """The library for linear algebra: always the project's own kernels.

    ``"default"`` and ``"portable"`` are accepted and mean the same; no provider has another one.
    """
    if backend not in (None, "default", "portable"):
        raise RuntimeError(
            f"Unknown input value {backend!r}. Choose from: default, portable. Linear algebra has "
            "no other provider."
        )
    return "portable"
