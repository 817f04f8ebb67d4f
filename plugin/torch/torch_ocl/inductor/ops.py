"""Inductor's operations on values as OpenCL C, for one value and for vectors alike.

What is a function of one or two numbers is a row of a table; functions with a ``_`` at the end are
those of kernels/include/math.h, which are the operators' own.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._inductor.codegen.common import (
    CSEVariable,
    IndentedBuffer,
    OpOverrides,
    pointwise_overrides_data,
)
from torch._inductor.utils import get_bounds_index_expr, sympy_index_symbol
from torch._inductor.virtualized import V, ops

from torch_ocl.inductor.types import (
    as_type,
    cast,
    common,
    computed,
    literal,
    select,
    tag,
    truth,
    value_type,
)

_FUNCTIONS = {
    **{name: name for name in "sqrt exp2 expm1 log log2 log10 log1p tan sinh cosh asin".split()},
    **{name: name for name in "acos atan asinh acosh atanh erfc rsqrt floor ceil trunc".split()},
    **{name: f"{name}_" for name in "exp sin cos tanh erf lgamma".split()},
    "round": "rint",
}
_FUNCTIONS_OF_TWO = {
    **{name: name for name in ("atan2", "hypot", "copysign")},
    "pow": "pow_",
    "nextafter": "nextafter_",
}
_ARITHMETIC = {"add": ("+", "|"), "sub": ("-", "^"), "mul": ("*", "&")}  # of numbers, of truths
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_BITS = {
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "and_": "&",
    "or_": "|",
    "xor": "^",
}
_TO_INTEGER = {
    "trunc_to_int": "trunc",
    "floor_to_int": "floor",
    "ceil_to_int": "ceil",
    "round_to_int": "rint",
}
# Kernels with these take one value at a time: control flow, and functions of scalars alone.
SCALAR_ONLY = frozenset(
    ("to_dtype_bitcast", "randint64", "lgamma", "nextafter", "indirect_indexing")
)
# The same where they compute in float64, whose vectors PoCL gets wrong (include/fmod.h, pow.h).
SCALAR_IN_FLOAT64 = frozenset(("mod", "fmod", "remainder", "pow"))


def function(name: str, dtype: torch.dtype) -> str:
    """The headers have their functions for float; others are OpenCL's own."""
    return name if dtype == torch.float32 else name.removesuffix("_")


class OpenCLOverrides(OpOverrides):
    """Each method gives the text of an expression, or a variable that it has declared."""

    @staticmethod
    def constant(value: Any, dtype: Any) -> str:
        return literal(value, dtype)

    @staticmethod
    def to_dtype(x: Any, dtype: Any, src_dtype: Any = None, use_compute_types: Any = True) -> str:
        if not use_compute_types and dtype in (torch.float16, torch.bfloat16):
            return f"rounded_{tag(dtype)}({as_type(x, torch.float32)})"
        return as_type(x, dtype)

    @staticmethod
    def to_dtype_bitcast(x: Any, dtype: Any, src_dtype: Any) -> str:
        if dtype == src_dtype:
            return str(x)
        bits = str(x)
        if computed(src_dtype) != src_dtype:
            bits = f"bits_{tag(src_dtype)}({x})"
        elif src_dtype == torch.bool:
            bits = f"(uchar)({x} & 1)"
        if computed(dtype) != dtype:
            return f"from_pattern_{tag(dtype)}(as_ushort({bits}))"
        return truth(f"({bits}) != 0") if dtype == torch.bool else f"as_{value_type(dtype)}({bits})"

    @staticmethod
    def index_expr(expr: Any, dtype: Any) -> Any:
        kernel = V.kernel
        index = kernel.prepare_indexing(expr)
        kind = kernel.get_index_dtype_as_torch_dtype()
        if dtype.is_floating_point and not expr.is_integer:  # a number with a fraction
            kind = torch.float64 if kernel.target.has_float64 else torch.float32
        text = f"(({value_type(kind)})({kernel.index_to_str(index)}))"
        if kernel.lanes is not None and kernel.lane_step(index) == 1:
            text = f"({text} + {kernel.lane_numbers(kernel.index_dtype)})"
        bounds = get_bounds_index_expr(expr)
        var = kernel.cse.generate(kernel.compute, text, bounds=bounds, dtype=kind)
        return ops.to_dtype(var, dtype)

    value_expr = index_expr

    @staticmethod
    def indirect_indexing(var: Any, size: Any, check: Any = True, wrap_neg: Any = True) -> Any:
        """A checked index is 0 where it is out of range, and the kernel reports it."""
        kernel = V.kernel
        if check:
            text = f"checked_index({var}, {kernel.index_to_str(size)}, faults, fault_site)"
            kernel.reports_faults = True
            var = kernel.cse.generate(kernel.compute, text, bounds=var.bounds, dtype=torch.int64)
        return sympy_index_symbol(str(var))

    @staticmethod
    def masked(condition: Any, body: Any, other: Any) -> Any:
        """The body loads where the condition holds and nowhere else."""
        kernel = V.kernel
        if kernel.width > 1:
            with kernel.mask_loads(condition, 0):
                result = body()
            dtype = result.dtype
            text = select(as_type(condition, torch.bool), result, literal(other, dtype), dtype)
            return kernel.cse.generate(kernel.compute, text, dtype=dtype)
        scope = IndentedBuffer()
        with kernel.swap_buffers(scope), scope.indent():
            result = body()
        dtype = result.dtype
        var = kernel.cse.newvar(dtype=dtype)
        kernel.compute.writeline(f"{value_type(dtype)} {var} = {literal(other, dtype)};")
        kernel.compute.writeline(f"if ({condition}) {{")
        with kernel.compute.indent():
            kernel.compute.splice(scope)
            kernel.compute.writeline(f"{var} = {result};")
        kernel.compute.writeline("}")
        return var

    @staticmethod
    def where(a: Any, b: Any, c: Any) -> str:
        if not any(isinstance(v, CSEVariable) for v in (b, c)):
            raise NotImplementedError("where of two numbers")
        yes, no, dtype = common(b, c)
        return select(as_type(a, torch.bool), yes, no, dtype)

    @staticmethod
    def inline_asm_elementwise(*inputs: Any, asm: str, dtype: torch.dtype, **_: Any) -> str:
        """A formula of the headers, with {0}, {1}, ... for the inputs (lowerings.py)."""
        return f"({asm.format(*(as_type(x, dtype) for x in inputs))})"

    # ---- Arithmetic
    @staticmethod
    def neg(x: Any) -> str:
        return f"(-{x})"

    @staticmethod
    def abs(x: Any) -> str:
        if computed(x.dtype).is_floating_point:
            return f"fabs({x})"
        return f"convert_{value_type(x.dtype)}(abs({x}))"

    @staticmethod
    def truediv(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if not dtype.is_floating_point:
            x, y = cast(x, dtype, torch.float32), cast(y, dtype, torch.float32)
        return f"({x} / {y})"

    int_truediv = truediv
    div_rn = truediv

    @staticmethod
    def truncdiv(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        return f"trunc({x} / {y})" if dtype.is_floating_point else f"divided({x}, {y})"

    @staticmethod
    def floordiv(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        return f"floor({x} / {y})" if dtype.is_floating_point else f"floor_divided({x}, {y})"

    @staticmethod
    def mod(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        name = function("fmod_", dtype) if dtype.is_floating_point else "divided_rest"
        return f"{name}({x}, {y})"

    fmod = mod

    @staticmethod
    def remainder(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if dtype == torch.float32:
            return f"remainder_({x}, {y})"
        if not dtype.is_floating_point:
            return f"floor_divided_rest({x}, {y})"
        rest = f"fmod({x}, {y})"
        return f"({rest} + (({rest} != 0) & (({rest} < 0) != ({y} < 0))) * {y})"

    @staticmethod
    def fma(a: Any, b: Any, c: Any) -> str:
        x, y, z, dtype = common(a, b, c)
        return f"fma({x}, {y}, {z})" if dtype.is_floating_point else f"({x} * {y} + {z})"

    @staticmethod
    def maximum(a: Any, b: Any) -> str:
        return _order(a, b, ">=", "|", "max")

    @staticmethod
    def minimum(a: Any, b: Any) -> str:
        return _order(a, b, "<=", "&", "min")

    @staticmethod
    def sigmoid(x: Any) -> str:
        if x.dtype == torch.float64:
            return f"(1.0 / (1.0 + exp(-{x})))"
        return f"sigmoid_({as_type(x, torch.float32)})"

    # ---- Truth
    @staticmethod
    def logical_and(a: Any, b: Any) -> str:
        return f"({as_type(a, torch.bool)} & {as_type(b, torch.bool)})"

    @staticmethod
    def logical_or(a: Any, b: Any) -> str:
        return f"({as_type(a, torch.bool)} | {as_type(b, torch.bool)})"

    @staticmethod
    def logical_xor(a: Any, b: Any) -> str:
        return f"({as_type(a, torch.bool)} ^ {as_type(b, torch.bool)})"

    @staticmethod
    def logical_not(a: Any) -> str:
        return f"(~{as_type(a, torch.bool)})"

    @staticmethod
    def isnan(x: Any) -> str:
        floats = computed(x.dtype).is_floating_point
        return truth(f"isnan({x})") if floats else literal(False, torch.bool)

    @staticmethod
    def isinf(x: Any) -> str:
        floats = computed(x.dtype).is_floating_point
        return truth(f"isinf({x})") if floats else literal(False, torch.bool)

    @staticmethod
    def signbit(x: Any) -> str:
        floats = computed(x.dtype).is_floating_point
        return truth(f"signbit({x})" if floats else f"{x} < {literal(0, x.dtype)}")

    @staticmethod
    def sign(x: Any) -> str:
        if x.dtype == torch.bool:
            return str(x)
        zero, rest = literal(0, x.dtype), literal(0, x.dtype)
        if x.dtype.is_signed:
            rest = select(truth(f"{x} < {zero}"), literal(-1, x.dtype), zero, x.dtype)
        return select(truth(f"{x} > {zero}"), literal(1, x.dtype), rest, x.dtype)

    # ---- Bits
    @staticmethod
    def bitwise_not(x: Any) -> str:
        return f"(~{x})"

    @staticmethod
    def bitwise_left_shift(a: Any, b: Any) -> str:
        return _shift(a, b, "<<")

    @staticmethod
    def bitwise_right_shift(a: Any, b: Any) -> str:
        return _shift(a, b, ">>")

    # ---- Random numbers (include/generated_random.h)
    @staticmethod
    def rand(seed: Any, offset: Any) -> str:
        return _draw("uniform_number", seed, offset)

    @staticmethod
    def randn(seed: Any, offset: Any) -> str:
        return _draw("normal_number", seed, offset)

    @staticmethod
    def randint64(seed: Any, offset: Any, low: Any, high: Any) -> str:
        low, high = (as_type(v, torch.int64) for v in (low, high))
        return f"integer_number({seed}, (uint)({offset}), {low}, {high})"


def _order(a: Any, b: Any, better: str, of_truths: str, of_integers: str) -> str:
    """The larger or the smaller one; a NaN in either wins, of equal numbers the first."""
    x, y, dtype = common(a, b)
    if dtype == torch.bool:
        return f"({x} {of_truths} {y})"
    if dtype.is_floating_point:
        return f"(({x} {better} {y} || {x} != {x}) ? {x} : {y})"
    return f"{of_integers}({x}, {y})"


def _shift(a: Any, b: Any, operator: str) -> str:
    """By less than the type's bits; as ATen, by more all bits leave."""
    x, y, dtype = common(a, b)
    bits, zero = 8 * dtype.itemsize, literal(0, dtype)
    inside = truth(f"{y} >= {zero}") + " & " + truth(f"{y} < {literal(bits, dtype)}")
    last = literal(bits - 1, dtype)
    shifted = f"({x} {operator} ({y} & {last}))"
    beyond = f"({x} >> {last})" if operator == ">>" and dtype.is_signed else zero
    return select(f"({inside})", shifted, beyond, dtype)


def _draw(name: str, seed: Any, offset: Any) -> str:
    if V.kernel.width == 1:
        return f"{name}((ulong){seed}, (uint)({offset}))"
    return f"{name}((ulong){seed}.s0, convert_uint{V.kernel.width}({offset}))"


def _of_one(name: str) -> Callable[[Any], str]:
    def text(x: Any) -> str:
        if x.dtype is not None and not computed(x.dtype).is_floating_point:
            if name in ("floor", "ceil", "trunc", "rint"):
                return str(x)
            return f"{name}({as_type(x, torch.float32)})"
        return f"{function(name, computed(x.dtype))}({x})"

    return text


def _of_two(name: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if not dtype.is_floating_point:
            x, y, dtype = as_type(a, torch.float32), as_type(b, torch.float32), torch.float32
        return f"{function(name, dtype)}({x}, {y})"

    return text


def _arithmetic(of_numbers: str, of_truths: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        return f"({x} {of_truths if dtype == torch.bool else of_numbers} {y})"

    return text


def _comparison(operator: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if dtype == torch.bool:  # true is -1, and so less than false
            x, y = f"(-{x})", f"(-{y})"
        return truth(f"{x} {operator} {y}")

    return text


def _bits(operator: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, _ = common(a, b)
        return f"({x} {operator} {y})"

    return text


def _to_integer(name: str) -> Callable[[Any, torch.dtype], str]:
    def text(x: Any, dtype: torch.dtype) -> str:
        return cast(f"{name}({x})", x.dtype, dtype)

    return text


def _fill_in() -> None:
    """Adds the tables' rows, and for what is missing methods that say so."""
    rows: dict[str, Callable[..., str]] = {}
    rows |= {name: _of_one(text) for name, text in _FUNCTIONS.items()}
    rows |= {name: _of_two(text) for name, text in _FUNCTIONS_OF_TWO.items()}
    rows |= {name: _arithmetic(*both) for name, both in _ARITHMETIC.items()}
    rows |= {name: _comparison(operator) for name, operator in _COMPARISONS.items()}
    rows |= {name: _bits(operator) for name, operator in _BITS.items()}
    rows |= {name: _to_integer(text) for name, text in _TO_INTEGER.items()}
    rows["mul_rn"] = rows["mul"]
    for name, text in rows.items():
        text.__name__ = name
        setattr(OpenCLOverrides, name, staticmethod(text))
    for name in pointwise_overrides_data:
        if OpenCLOverrides._is_unimplemented(name):
            setattr(OpenCLOverrides, name, OpenCLOverrides._unimplemented(name))


_fill_in()
