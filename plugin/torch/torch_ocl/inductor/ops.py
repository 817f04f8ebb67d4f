"""Inductor's operations on values as OpenCL C, for one value and for vectors alike.

Where an operator has the same formula, it is the operator's row of expressions.def (formulas.py).
What is written here differs from that row, or has none, for the reason beside it.
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

from torch_ocl.inductor.formulas import formula
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

# Operations and the operators' rows. Of floats; where there is no row for integers, these are
# computed as float32.
_OF_ONE = {
    **{name: f"{name}.out" for name in "sqrt exp2 expm1 log log2 log10 log1p tan sinh".split()},
    **{name: f"{name}.out" for name in "cosh asin acos atan asinh acosh atanh erf erfc".split()},
    **{name: f"{name}.out" for name in "rsqrt sin cos tanh lgamma floor ceil trunc round".split()},
}
_OF_TWO = {
    **{name: f"{name}.out" for name in ("atan2", "hypot", "copysign", "nextafter")},
    "pow": "pow.Tensor_Tensor_out",
}
_COMPARISONS = {name: f"{name}.Tensor_out" for name in ("eq", "ne", "lt", "gt", "le", "ge")}
_BITS = {
    **{f"bitwise_{name}": f"bitwise_{name}.Tensor_out" for name in ("and", "or", "xor")},
    **{f"{name}_": f"bitwise_{name}.Tensor_out" for name in ("and", "or", "xor")},
}
# Of numbers (the rows of add and sub have a factor) and of truths (0 or -1).
_ARITHMETIC = {"add": ("+", "|"), "sub": ("-", "^"), "mul": ("*", "&")}
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
        return _row("neg.out", computed(x.dtype), x)

    @staticmethod
    def exp(x: Any) -> str:
        """The row's is exact on CPU drivers, too; softmax and sigmoid need none under 2.7e-38."""
        dtype = computed(x.dtype)
        if dtype == torch.float64:
            return f"exp({x})"
        return f"exp_({as_type(x, torch.float32)})"

    @staticmethod
    def abs(x: Any) -> str:
        """OpenCL's function for integers; the row's choice is an int where x is shorter."""
        dtype = computed(x.dtype)
        if dtype.is_floating_point:
            return _row("abs.out", dtype, x)
        return f"convert_{value_type(dtype)}(abs({x}))"

    @staticmethod
    def truediv(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if not dtype.is_floating_point:
            x, y = cast(x, dtype, torch.float32), cast(y, dtype, torch.float32)
            dtype = torch.float32
        return _row("div.out", dtype, x, y)

    int_truediv = truediv
    div_rn = truediv

    @staticmethod
    def truncdiv(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        trunc = formula("div.out_mode:trunc", dtype, x, y)
        return trunc or f"divided({x}, {y})"  # generated.h has it for each integer type

    @staticmethod
    def floordiv(a: Any, b: Any) -> str:
        """Of floats as Inductor's other back ends have it: the row's remainder is not taken."""
        x, y, dtype = common(a, b)
        return f"floor({x} / {y})" if dtype.is_floating_point else f"floor_divided({x}, {y})"

    @staticmethod
    def mod(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        return formula("fmod.Tensor_out", dtype, x, y) or f"divided_rest({x}, {y})"

    fmod = mod

    @staticmethod
    def remainder(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if (text := formula("remainder.Tensor_out", dtype, x, y)) is not None:
            return text
        if not dtype.is_floating_point:
            return f"floor_divided_rest({x}, {y})"
        # In float64 without the header's function.
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
        """In float64 without the header's function."""
        if x.dtype == torch.float64:
            return f"(1.0 / (1.0 + exp(-{x})))"
        return _row("sigmoid.out", torch.float32, as_type(x, torch.float32))

    # ---- Truth: 0 or -1, where the rows have 0 or 1
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
        dtype = computed(x.dtype)
        floats = dtype.is_floating_point
        return truth(_row("isnan.out", dtype, x)) if floats else literal(False, torch.bool)

    @staticmethod
    def isinf(x: Any) -> str:
        floats = computed(x.dtype).is_floating_point
        return truth(f"isinf({x})") if floats else literal(False, torch.bool)

    @staticmethod
    def signbit(x: Any) -> str:
        return truth(_row("signbit.out", computed(x.dtype), x))

    @staticmethod
    def sign(x: Any) -> str:
        if x.dtype == torch.bool:
            return str(x)
        return _row("sign.out", computed(x.dtype), x)

    # ---- Bits
    @staticmethod
    def bitwise_not(x: Any) -> str:
        return _row("bitwise_not.out", computed(x.dtype), x)

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
    """The larger or the smaller one; a NaN in either wins, of equal numbers the first. As the rows'
    functions, which are for float alone, and of maxima and minima all types are asked."""
    x, y, dtype = common(a, b)
    if dtype == torch.bool:
        return f"({x} {of_truths} {y})"
    if dtype.is_floating_point:
        return f"(({x} {better} {y} || {x} != {x}) ? {x} : {y})"
    return f"{of_integers}({x}, {y})"


def _shift(a: Any, b: Any, operator: str) -> str:
    """By less than the type's bits; as ATen, by more all bits leave. As the rows' functions, which
    are for one type."""
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


def _row(row: str, dtype: torch.dtype, a: Any, b: Any = "") -> str:
    text = formula(row, dtype, str(a), str(b))
    assert text is not None, f"{row} is not for {dtype}"
    return text


def _of_one(row: str) -> Callable[[Any], str]:
    def text(x: Any) -> str:
        own = formula(row, computed(x.dtype), str(x)) if x.dtype != torch.bool else None
        return own or _row(row, torch.float32, as_type(x, torch.float32))

    return text


def _of_two(row: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        own = formula(row, dtype, str(x), str(y))
        return own or _row(row, torch.float32, *(as_type(v, torch.float32) for v in (a, b)))

    return text


def _arithmetic(of_numbers: str, of_truths: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        return f"({x} {of_truths if dtype == torch.bool else of_numbers} {y})"

    return text


def _comparison(row: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        if dtype == torch.bool:  # true is -1, and so less than false
            x, y = f"(-{x})", f"(-{y})"
        return truth(_row(row, dtype, x, y))

    return text


def _bits(row: str) -> Callable[[Any, Any], str]:
    def text(a: Any, b: Any) -> str:
        x, y, dtype = common(a, b)
        return _row(row, dtype, x, y)

    return text


def _to_integer(name: str) -> Callable[[Any, torch.dtype], str]:
    def text(x: Any, dtype: torch.dtype) -> str:
        return cast(f"{name}({x})", x.dtype, dtype)

    return text


def _fill_in() -> None:
    """Adds the tables' rows, and for what is missing methods that say so."""
    rows: dict[str, Callable[..., str]] = {}
    rows |= {name: _of_one(row) for name, row in _OF_ONE.items()}
    rows |= {name: _of_two(row) for name, row in _OF_TWO.items()}
    rows |= {name: _arithmetic(*both) for name, both in _ARITHMETIC.items()}
    rows |= {name: _comparison(row) for name, row in _COMPARISONS.items()}
    rows |= {name: _bits(row) for name, row in _BITS.items()}
    rows |= {name: _to_integer(text) for name, text in _TO_INTEGER.items()}
    rows["mul_rn"] = rows["mul"]
    for name, text in rows.items():
        text.__name__ = name
        setattr(OpenCLOverrides, name, staticmethod(text))
    for name in pointwise_overrides_data:
        if OpenCLOverrides._is_unimplemented(name):
            setattr(OpenCLOverrides, name, OpenCLOverrides._unimplemented(name))


_fill_in()
