"""GGUF's blocks as kernels read them: which of its types have a format, products and values of
weights of these, and a count of those that have none."""

import threading
import warnings
from typing import NamedTuple

import torch

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class Type(NamedTuple):
    """A format of ``src/base/weight_formats.def`` by ggml's number."""

    format: str
    elements: int
    bytes: int
    """Of a block of ``elements``."""


TYPES = {
    2: Type("q4_0", 32, 18),
    3: Type("q4_1", 32, 20),
    6: Type("q5_0", 32, 22),
    7: Type("q5_1", 32, 24),
    8: Type("q8_0", 32, 34),
    10: Type("q2_k", 256, 84),
    11: Type("q3_k", 256, 110),
    12: Type("q4_k", 256, 144),
    13: Type("q5_k", 256, 176),
    14: Type("q6_k", 256, 210),
    20: Type("iq4_nl", 32, 18),
    23: Type("iq4_xs", 256, 136),
}

READ = ", ".join(sorted(kind.format.upper() for kind in TYPES.values()))

_lock = threading.Lock()
_unpacked: dict[str, int] = {}


def unpacked_counts() -> dict[str, int]:
    """How often a library unpacked quantised weights for ocl, whole, because kernels cannot read
    them as they are: by library and kind, as ``"diffusers Q5_K"``. The first of each kind warns."""
    with _lock:
        return dict(_unpacked)


def count_unpacked(library: str, what: str) -> None:
    """Notes that ``library`` unpacks weights, or a file: ``what`` is their type or its kind."""
    if torch.compiler.is_compiling():  # which a count of calls has no place in
        return
    with _lock:
        key = f"{library} {what}"
        first = key not in _unpacked
        _unpacked[key] = _unpacked.get(key, 0) + 1
    if first:
        warnings.warn(
            f"ocl: {library} unpacks GGUF weights ({what}), which takes several times their memory "
            f"and is slow: kernels read {READ} in place. torch.ocl.unpacked_counts() counts this",
            RuntimeWarning,
            stacklevel=2,
        )


def columns_of(kind: Type, row_bytes: int) -> int:
    return row_bytes // kind.bytes * kind.elements


def multiply(
    x: torch.Tensor, blocks: torch.Tensor, kind: Type, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """``x`` [..., K] times the transpose of ``blocks`` [N, bytes of a row], as x's type."""
    if bias is not None:
        bias = bias.to(x.dtype)
    n = blocks.shape[0]
    return torch.ops.ocl.quantised_mm(x, blocks, None, None, bias, kind.format, n, 0)


def values(
    blocks: torch.Tensor, kind: Type, dtype: torch.dtype, index: torch.Tensor | None = None
) -> torch.Tensor:
    """The weight, rounded once to ``dtype``: of all rows of ``blocks`` [..., bytes of a row], or of
    those that ``index`` says."""
    rows = blocks.reshape(-1, blocks.shape[-1])
    size = [rows.shape[0], columns_of(kind, rows.shape[1])]
    found = torch.ops.ocl.dequantise(rows, None, None, index, kind.format, size, dtype, 0)
    return found if index is not None else found.view(*blocks.shape[:-1], size[1])
