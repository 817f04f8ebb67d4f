"""Operators that stay whole: formulas of the plugin's headers which cost less than their pieces,
and operators whose kernels are better than what their decompositions give."""

from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import lowering
from torch._inductor.lowering import fallback_handler, make_pointwise, to_dtype
from torch._inductor.virtualized import ops

from torch_ocl.inductor.target import Target

aten = torch.ops.aten

# By operator: its formulas in OpenCL C by the value of `approximate`; {0}, {1}: its tensors.
_GELU = {"none": "{0} * normal_cdf_({0})", "tanh": "gelu_tanh_({0})"}
_GELU_BACKWARD = {"none": "{0} * gelu_slope_({1})", "tanh": "{0} * gelu_tanh_slope_({1})"}
_FORMULAS: dict[Any, tuple[int, dict[str, str]]] = {
    aten.gelu.default: (1, _GELU),
    aten.gelu_backward.default: (2, _GELU_BACKWARD),
    aten.silu_backward.default: (2, {"none": "{0} * silu_slope_({1})"}),
    aten.mish_backward.default: (2, {"none": "{0} * mish_slope_({1})"}),
}
# Calls: sums by index in a fixed order; a check that the plugin's kernel reports.
_CALLS = (
    aten.embedding_dense_backward.default,
    aten._assert_async.default,
    aten._assert_async.msg,
)
# Calls in CPU style: one kernel draws 64 numbers at a time, a fused one 16.
_CALLS_ON_CPUS = (aten.native_dropout.default,)


def _calls() -> tuple[Any, ...]:
    style = Target.of(torch.device("ocl")).style
    return (*_CALLS, *_CALLS_ON_CPUS) if style == "cpu" else _CALLS


def _formula(operator: Any, tensors: int, texts: dict[str, str]) -> Callable[..., Any]:
    call = fallback_handler(operator, add_to_fallback_set=False)

    def lower(*args: Any, approximate: str = "none") -> Any:
        given = args[:tensors]
        of_float = all(
            t.get_device().type == "ocl" and t.get_dtype() in _COMPUTED_AS_FLOAT for t in given
        )
        if not of_float:
            options = {"approximate": approximate} if len(texts) > 1 else {}
            return call(*given, **options)
        text = texts[args[tensors] if len(args) > tensors else approximate]

        def value(*values: Any) -> Any:
            values = tuple(ops.to_dtype(v, torch.float32) for v in values)
            return ops.inline_asm_elementwise(*values, asm=text, dtype=torch.float32)

        return make_pointwise(value)(*given)

    return lower


_ANY = (aten.any.default, aten.any.dim, aten.any.dims)


def _any_of_bytes(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of uint8 it is uint8; Inductor gives bool on every device."""

    def lower(x: Any, *args: Any, **options: Any) -> Any:
        result = original(x, *args, **options)
        return to_dtype(result, torch.uint8) if x.get_dtype() == torch.uint8 else result

    return lower


_COMPUTED_AS_FLOAT = (torch.float32, torch.float16, torch.bfloat16)


def lowerings() -> dict[Any, Callable[..., Any]]:
    """Those that take the place of Inductor's, for graphs of ocl."""
    own: dict[Any, Callable[..., Any]] = {
        operator: _formula(operator, tensors, texts)
        for operator, (tensors, texts) in _FORMULAS.items()
    }
    theirs = {operator: lowering.lowerings.get(operator) for operator in _ANY}
    own |= {operator: _any_of_bytes(how) for operator, how in theirs.items() if how is not None}
    own |= {call: fallback_handler(call, add_to_fallback_set=False) for call in _calls()}
    return own


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Inductor's, without those of operators that stay whole."""
    from torch._inductor.decomposition import select_decomp_table

    kept = (*_FORMULAS, *_calls())
    return {op: how for op, how in select_decomp_table().items() if op not in kept}
