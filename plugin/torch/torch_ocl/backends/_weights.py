"""Which quantised weights have kernels: ``weight_int4``, ``weight_int8``, ``quantized``."""

from typing import Any

from torch_ocl import _C
from torch_ocl.backends._providers import is_operation_disabled, provider_rows

OPERATOR = "_ocl_quantised_mm.out"

# Rows of src/base/weight_formats.def; tests compare them.
INT4 = ("int4", "int4_signed", "int4_tiles", "q4_0", "q4_1", "q4_k", "iq4_nl",
        "iq4_xs")  # fmt: skip
INT8 = ("int8", "int8_zeros", "q8_0")
ALL = ("int8", "int8_zeros", "e4m3", "e5m2", "int4", "int4_signed", "int4_tiles", "nf4", "fp4",
       "codes", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
       "iq4_nl", "iq4_xs")  # fmt: skip
# Providers with kernels for such products, and the formats that these read.
_OF_PROVIDERS = {
    "x86_avx512": ("int4", "int4_signed", "int4_tiles", "nf4", "fp4", "codes"),
    "portable": ALL,
}


class Weights:
    """Products with weights of some bits, which kernels read in the bytes that libraries keep:
    ``torch.ops.ocl.quantised_mm`` and ATen's names (``_weight_int4pack_mm`` and so on)."""

    def __init__(self, formats: tuple[str, ...]) -> None:
        self._formats = formats

    @property
    def formats_by_provider(self) -> dict[str, list[str]]:
        """The formats that kernels read, for each provider that is available and enabled. All need
        those of ``portable``, which takes every problem."""
        if _C.unavailable_reason() or is_operation_disabled(OPERATOR):
            return {}
        on = [row.name for row in provider_rows() if row.available and row.enabled]
        if "portable" not in on:
            return {}
        known = {name: _OF_PROVIDERS[name] for name in on if name in _OF_PROVIDERS}
        found = {name: [f for f in self._formats if f in of] for name, of in known.items()}
        return {name: formats for name, formats in found.items() if formats}

    @property
    def supported_formats(self) -> list[str]:
        """The formats that some enabled provider's kernels read."""
        known = {f for formats in self.formats_by_provider.values() for f in formats}
        return [f for f in self._formats if f in known]

    @property
    def reason(self) -> str:
        """Why ``is_available()`` is False; empty if it is True."""
        if self.supported_formats:
            return ""
        if why := _C.unavailable_reason():
            return why
        if is_operation_disabled(OPERATOR):
            return f"{OPERATOR} is disabled (enable_operations() undoes that)"
        return f"the provider 'portable' is disabled, and {OPERATOR} needs its kernels"

    def is_available(self) -> bool:
        """Whether kernels read any of these formats; ``reason`` says why not."""
        return not self.reason

    def __repr__(self) -> str:
        return f"Weights({', '.join(self.supported_formats) or self.reason})"


class Quantized(Weights):
    """All formats. PyTorch's own quantized tensors (``quint8`` and the like), for which
    ``torch.backends.quantized`` chooses engines, have none on ocl."""

    @property
    def supported_engines(self) -> list[str]:
        """Engines for PyTorch's quantized tensors: none."""
        return []

    @property
    def engine(self) -> str:
        """``"none"``: see ``supported_engines``. Another one raises RuntimeError."""
        return "none"

    @engine.setter
    def engine(self, value: Any) -> None:
        if value != "none":
            raise RuntimeError(
                f"ocl has no engine {value!r}: PyTorch's quantized tensors are deprecated and have "
                "no kernels there; torchao quantises models for ocl"
            )
