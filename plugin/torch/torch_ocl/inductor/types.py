"""Element types in generated OpenCL C: names, literals, casts and truth, for one value and for
vectors of 16 alike.

A value has the type in which it is computed: float for 16-bit floats, int for bool. Truth is 0 or
-1, as comparisons of vectors give it, so that ``?:``, ``&`` and ``|`` mean the same for both.
"""

import math
from typing import Any

import torch
from torch._inductor.codegen.common import CSEVariable
from torch._inductor.virtualized import V

WIDTH = 16
"""Lanes of a vector."""

# The suffix that kernels/include/types.h gives an element type, and the scalar type of values.
_NAMES = {
    torch.float32: ("f32", "float"),
    torch.float64: ("f64", "double"),
    torch.float16: ("f16", "float"),
    torch.bfloat16: ("bf16", "float"),
    torch.bool: ("bool", "int"),
    torch.int8: ("i8", "char"),
    torch.uint8: ("u8", "uchar"),
    torch.int16: ("i16", "short"),
    torch.uint16: ("u16", "ushort"),
    torch.int32: ("i32", "int"),
    torch.uint32: ("u32", "uint"),
    torch.int64: ("i64", "long"),
    torch.uint64: ("u64", "ulong"),
}
# The signed type of a size in bytes, which the lanes of a truth need beside values of that size.
_TRUTHS = {1: "char", 2: "short", 4: "int", 8: "long"}


def is_known(dtype: torch.dtype) -> bool:
    """Whether kernels can load, store and compute it, where the device has it."""
    return dtype in _NAMES


def tag(dtype: torch.dtype) -> str:
    """``f32``, ``bf16``, ``bool``, ..."""
    return _NAMES[dtype][0]


def computed(dtype: torch.dtype) -> torch.dtype:
    """The dtype of values: float32 for 16-bit floats."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def scalar(dtype: torch.dtype) -> str:
    """The OpenCL C type of one value."""
    return _NAMES[dtype][1]


def vector(name: str) -> str:
    """The type of as many values as the kernel has lanes."""
    return name if V.kernel.width == 1 else f"{name}{V.kernel.width}"


def value_type(dtype: torch.dtype) -> str:
    return vector(scalar(dtype))


def _number(value: Any, dtype: torch.dtype) -> str:
    if dtype == torch.bool:  # the text of no int, which would be taken for the same value
        return "-true" if value else "-false"
    if not computed(dtype).is_floating_point:
        value = int(value)
        if value == -(2**63):
            return f"{value + 1}L - 1"
        return f"{value}{ {'ulong': 'UL', 'long': 'L'}.get(scalar(dtype), '') }"
    value = float(value)
    is_double = dtype == torch.float64
    if math.isnan(value):
        return "NAN"
    if math.isinf(value) or (not is_double and abs(value) > torch.finfo(torch.float32).max):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}" if is_double else f"{value!r}f"


def literal(value: Any, dtype: torch.dtype) -> str:
    return f"(({value_type(dtype)})({_number(value, dtype)}))"


def truth(comparison: str) -> str:
    """0 or -1 from what a comparison gives."""
    return f"(-({comparison}))" if V.kernel.width == 1 else f"convert_int{WIDTH}({comparison})"


def cast(value: Any, source: torch.dtype, target: torch.dtype) -> str:
    """A value as ATen converts it: numbers are truncated, bool is ``!= 0``."""
    source, target = computed(source), computed(target)
    if source == target:
        return str(value)
    if target == torch.bool:
        return truth(f"{value} != {literal(0, source)}")
    if source == torch.bool:
        if target == torch.int32:
            return f"(-{value})"
        value = f"(-{value})"
    return f"convert_{value_type(target)}({value})"


def as_type(value: Any, dtype: torch.dtype) -> str:
    """A variable, or a number of Python, as a value of a type."""
    is_variable = isinstance(value, CSEVariable)
    return cast(value, value.dtype, dtype) if is_variable else literal(value, dtype)


def select(condition: str, yes: str, no: str, dtype: torch.dtype) -> str:
    """``condition`` is a truth. Not by select(), which PoCL computes lane by lane."""
    if dtype == torch.bool:
        return f"(({condition} & {yes}) | (~{condition} & {no}))"
    size = computed(dtype).itemsize
    if V.kernel.width > 1 and size != 4:
        condition = f"convert_{vector(_TRUTHS[size])}({condition})"
    return f"({condition} ? {yes} : {no})"


def common(*values: Any) -> tuple[Any, ...]:
    """The values in their common type, and the type."""
    dtypes = [computed(v.dtype) for v in values if isinstance(v, CSEVariable)]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = torch.promote_types(dtype, other)
    return (*(as_type(v, dtype) for v in values), dtype)
