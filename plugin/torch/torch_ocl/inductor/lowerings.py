"""Operators that stay whole: formulas of the plugin's headers which cost less than their pieces,
and operators whose kernels are better than what their decompositions give."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch._C import DispatchKey
from torch._decomp.decompositions import upsample_compute_output_size
from torch._inductor import ir, lowering
from torch._inductor.lowering import fallback_handler, make_pointwise, to_dtype
from torch._inductor.virtualized import V, ops

from torch_ocl.inductor.target import Target
from torch_ocl.inductor.types import WIDTH

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
_RANDOM = (aten.native_dropout.default,)
# Calls in CPU style: their windows, steps and gathers fit no vectors of a fused kernel, which then
# takes several times as long as the operator's own (bench/history.md).
_POOLS = ("avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d")
_POOLS_WITH_PLACES = ("max_pool2d_with_indices", "max_pool3d_with_indices")
_PADS = tuple(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3))
_RESIZES = (
    *(f"{kind}{n}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
)
_WITH_GRADIENTS = (*_POOLS, *_POOLS_WITH_PLACES, *_PADS, *_RESIZES)
_CALLS_ON_CPUS = (
    *_RANDOM,
    aten.grid_sampler_2d.default,
    *(getattr(aten, name).default for name in _WITH_GRADIENTS),
    *(getattr(aten, f"{name}_backward").default for name in _WITH_GRADIENTS),
)
# Calls in GPU style: statistics of channels, whose rows are pieces of images (bench/history.md).
_CALLS_ON_GPUS = (
    aten._native_batch_norm_legit_functional.default,
    aten.native_batch_norm_backward.default,
)


def _is_cpu() -> bool:
    return Target.of(torch.device("ocl")).style == "cpu"


def _calls() -> tuple[Any, ...]:
    return (*_CALLS, *(_CALLS_ON_CPUS if _is_cpu() else _CALLS_ON_GPUS))


_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


@contextlib.contextmanager
def _kernels_in_python(operator: Any, kernel: Callable[..., Any] | None) -> Iterator[None]:
    """An operator's kernels of autograd in Python replaced, or taken away."""
    try:
        with mock.patch.dict(operator.py_kernels):
            for key in _KEYS:
                operator.py_kernels.pop(key, None)
                if kernel is not None:
                    operator.py_kernels[key] = kernel
            operator._dispatch_cache.clear()
            yield
    finally:
        operator._dispatch_cache.clear()


@contextlib.contextmanager
def whole_resizes() -> Iterator[None]:
    """While a graph is traced: PyTorch takes these operators to pieces in Python, before it looks
    for decompositions."""
    with contextlib.ExitStack() as stack:
        for name in _RESIZES if _is_cpu() else ():
            packet = getattr(aten, name)
            own = _resize(packet.default, packet.vec.py_kernels.get(_KEYS[0]))
            stack.enter_context(_kernels_in_python(packet.vec, own))
        yield


def _resize(whole: Any, in_pieces: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A resize by sizes or by factors as the operator that takes both; in pieces where sizes vary,
    because gradients of whole ones have no shapes then (PyTorch 2.13)."""
    if in_pieces is None:
        return None

    def call(x: Any, sizes: Any, *options: Any) -> Any:
        *corners, factors = options
        numbers = [*x.size(), *(sizes or ()), *(factors or ())]
        if any(isinstance(n, (torch.SymInt, torch.SymFloat)) for n in numbers):
            return in_pieces(x, sizes, *options)
        sizes = upsample_compute_output_size(x.size(), sizes, factors)
        with _kernels_in_python(whole, None):
            return whole(x, sizes, *corners, *(factors or [None] * len(sizes)))

    return call


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


def _pad(original: Callable[..., Any]) -> Callable[..., Any]:
    """A call where the rows of the result fit no vectors: one element at a time otherwise."""
    call = fallback_handler(aten.constant_pad_nd.default, add_to_fallback_set=False)

    def lower(x: Any, padding: Any, value: Any = 0) -> Any:
        if x.get_device().type != "ocl" or not x.get_size():
            return original(x, padding, value)
        before, after = (*padding, 0, 0)[:2]
        row = x.get_size()[-1] + before + after
        is_whole = V.graph.sizevars.statically_known_multiple_of(row, WIDTH)
        return original(x, padding, value) if is_whole else call(x, padding, value)

    return lower


_COMPUTED_AS_FLOAT = (torch.float32, torch.float16, torch.bfloat16)


_FORMATS = ([3, 2, 1, 0], ir.NHWC_STRIDE_ORDER)


def _gradients_of_convolution() -> Callable[..., Any]:
    """A call, with the result's gradient in the input's format. PyTorch 2.13 gives both the order
    of the weight's gradient, in which depthwise weights have two strides of 1: their maps were
    copied to an order that no kernel reads well."""
    call = fallback_handler(aten.convolution_backward.default, add_to_fallback_set=False)

    def lower(grad: Any, x: Any, *rest: Any) -> Any:
        fits = [
            order
            for order in _FORMATS
            if len(x.get_size()) == 4 and ir.is_stride_order_storage_and_layout(x, order)
        ]
        if len(fits) == 1 and x.get_device().type == "ocl":  # else sizes of 1 leave it open
            grad = ir.ExternKernel.require_stride_order(grad, fits[0])
        return call(grad, x, *rest)

    return lower


def lowerings() -> dict[Any, Callable[..., Any]]:
    """Those that take the place of Inductor's, for graphs of ocl."""
    own: dict[Any, Callable[..., Any]] = {
        operator: _formula(operator, tensors, texts)
        for operator, (tensors, texts) in _FORMULAS.items()
    }
    theirs = {operator: lowering.lowerings.get(operator) for operator in _ANY}
    own |= {operator: _any_of_bytes(how) for operator, how in theirs.items() if how is not None}
    own |= {call: fallback_handler(call, add_to_fallback_set=False) for call in _calls()}
    own[aten.convolution_backward.default] = _gradients_of_convolution()
    pad = lowering.lowerings.get(aten.constant_pad_nd.default)
    if _is_cpu() and pad is not None:
        own[aten.constant_pad_nd.default] = _pad(pad)
    return own


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Inductor's, without those of operators that stay whole."""
    from torch._inductor.decomposition import select_decomp_table

    kept = (*_FORMULAS, *_calls())
    return {op: how for op, how in select_decomp_table().items() if op not in kept}
