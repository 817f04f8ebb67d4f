#!/usr/bin/env python3
"""Replays recorded cases with PyTorch's CPU build: an oracle that shares nothing with the project.

    replay.py FILE [--only REGEX] [--verbose] [--device ocl]

FILE comes from `ocltensor-conformance --record FILE`. It is a sequence of records. A record is one
line of JSON (UTF-8, ends in a newline) and then `bytes` raw bytes that the JSON refers to:

    op, schema, dtype, seed   what ran; `dtype` and `seed` reproduce the case in the kit
    random                    the operator draws random numbers: only shapes can be compared
    out_dtype                 true: the first output has another dtype than inferred
    args                      inputs in the schema's order: null, number, bool, list of numbers,
                              {"string"}, {"scalar_type"}, {"float": "inf"}, {"complex": [re, im]},
                              {"tensors": [...]}, or a tensor {"dtype", "sizes", "at", "bytes"}:
                              row-major bytes at `at`
    mutates                   positions of arguments that are updated in place
    outs                      outputs, then the updated arguments, as tensors
    bounds                    per output {"at", "bytes"}: float64 largest accepted error per
                              element; 0 bytes: exact

A result passes if PyTorch on the same inputs agrees within the bounds. PyTorch's own kernels for
float16, bfloat16 and float32 are not all as accurate as the bounds demand, so an output that
differs is judged again by PyTorch on float64 copies of the inputs; it fails if it differs from
both. NaN must match NaN and infinities must match. Exit status: 0 all agree, 1 a mismatch.

With `--device ocl` the same cases run through the PyTorch adapter (torch_ocl must be importable):
one description drives both hosts. Both results may be off by the bound, so twice the bound is
accepted. A call that the adapter declines, and the plugin did not, is a mismatch.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import quantised_weights
import torch
import torchvision_library

DTYPES = {
    name: getattr(torch, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 "
        "float16 bfloat16 float32 float64 complex64 complex128"
    ).split()
}
Record = dict[str, Any]
DEVICE = torch.device("cpu")  # set by --device


class Known(NamedTuple):
    """A place where PyTorch is not taken as judge, and why."""

    why: str
    infinite: bool = False  # at infinite arguments
    error: float = 0.0  # times (1 + |result|): what PyTorch may be off by
    subnormal: bool = False  # at subnormal arguments


# Measured against the C library's j0, j1 and y1, which agree with the CPU backend.
_BESSEL = Known(
    "gives NaN at infinities, where the limit is 0, and is off by 1e-6 near 5",
    infinite=True,
    error=3e-6,
)
KNOWN = {
    "i0.out": Known("gives NaN at infinities, the limit is infinity", infinite=True),
    "special_i1.out": Known("gives NaN at infinities, the limit is infinity", infinite=True),
    "special_modified_bessel_i0.out": Known("gives NaN at infinities", infinite=True),
    "special_modified_bessel_k0.out": Known("gives infinity below 1e-323", subnormal=True),
    "special_modified_bessel_k1.out": Known("gives NaN where 1 / x overflows", subnormal=True),
    "special_scaled_modified_bessel_k0.out": Known("gives infinity below 1e-323", subnormal=True),
    "special_scaled_modified_bessel_k1.out": Known(
        "gives NaN where 1 / x overflows", subnormal=True
    ),
    "special_modified_bessel_i1.out": Known("gives NaN at infinities", infinite=True),
    # Measured against the C++ library's Bessel functions of order 1/3.
    "special_airy_ai.out": Known(
        "gives NaN at infinities, and is off by 3e-6 at negative arguments",
        infinite=True,
        error=4e-6,
    ),
    "special_bessel_j0.out": _BESSEL,
    "special_bessel_j1.out": _BESSEL,
    "special_bessel_y0.out": _BESSEL,
    "special_bessel_y1.out": _BESSEL,
    "pow.Tensor_Scalar_out": Known(
        "takes sqrt and rsqrt for exponents 0.5 and -0.5: NaN at -inf, unlike IEEE's pow",
        infinite=True,
    ),
    "polygamma.out": Known(
        "has a trigamma of 10 digits, and NaN at infinity, where the limit is 0",
        infinite=True,
        error=1e-9,
    ),
    "_standard_gamma_grad.out": Known("approximates it with an error of 1e-3", error=3e-3),
    "_dirichlet_grad.out": Known("approximates it with errors up to 1e-2", error=3e-2),
    "hardsigmoid_backward.grad_input": Known("divides by 6 in float32", error=1e-7),
}


# Where all elements are equal the result is 0 (or the bias), and so is its bound.
KNOWN |= {
    f"native_{kind}_norm.out": Known(
        "rounds the mean, so that equal elements differ from it", error=1e-12
    )
    for kind in ("batch", "group", "layer")
}


# PyTorch's optimizers take these in float32 beside float64 parameters, too. The float64 run must
# judge them: in float16 and bfloat16, without momentum, the CPU's `_fused_sgd_` of 2.13 leaves
# whole vectors of parameters as they were.
FLOAT32_ARGUMENTS = {"grad_scale", "found_inf"}


class Skip(Exception):
    """The record cannot be replayed; the text says why."""


def records(path: str) -> Iterator[tuple[Record, bytes]]:
    """Yields (JSON, bytes) of every record of a file."""
    with open(path, "rb") as file:
        while line := file.readline():
            record = json.loads(line)
            blob = file.read(record["bytes"])
            if len(blob) != record["bytes"]:
                raise ValueError(f"{path} is truncated")
            yield record, blob


def tensor(j: Record, blob: bytes) -> torch.Tensor:
    """The tensor that a JSON object describes."""
    dtype = DTYPES[j["dtype"]]
    if j["bytes"] == 0:
        return torch.empty(j["sizes"], dtype=dtype)
    raw = bytearray(blob[j["at"] : j["at"] + j["bytes"]])
    return torch.frombuffer(raw, dtype=dtype).reshape(j["sizes"])


def argument(j: Any, blob: bytes) -> Any:
    """A Python argument from its JSON form."""
    if not isinstance(j, dict):
        return j
    if "string" in j:
        return j["string"]
    if "scalar_type" in j:
        return DTYPES[j["scalar_type"]]
    if "float" in j:
        return float(j["float"])
    if "complex" in j:
        return complex(*j["complex"])
    if "tensors" in j:
        return [None if t is None else tensor(t, blob) for t in j["tensors"]]
    return tensor(j, blob)


def move(value: Any) -> Any:
    """Tensors and lists of tensors on the device that is judged."""
    if isinstance(value, torch.Tensor):
        return value.to(DEVICE)
    if isinstance(value, list) and any(isinstance(v, torch.Tensor) for v in value):
        return [None if v is None else move(v) for v in value]
    return value


def widen(value: Any) -> Any:
    """Floating tensors and dtypes as float64, complex ones as complex128."""
    if isinstance(value, torch.Tensor):
        return (
            value.double()
            if value.is_floating_point()
            else value.to(torch.complex128)
            if value.is_complex()
            else value
        )
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    if isinstance(value, torch.dtype) and value.is_complex:
        return torch.complex128
    if isinstance(value, list):
        return [widen(v) for v in value]
    return value


# Where the project's operator has no overload of its own in PyTorch: how to say it there.
def _copy(self: torch.Tensor, src: torch.Tensor, _non_blocking: bool) -> torch.Tensor:
    return self.clone().copy_(src)


def _attention(*args: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The inner operator adds a bool mask as 0 and 1; PyTorch's public function masks with it."""
    query, key, value, mask, dropout, causal, dropout_mask, scale, grouped = args
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=query.dtype, device=query.device).masked_fill(
            ~mask, -torch.inf
        )
    return torch.ops.aten._scaled_dot_product_attention_math(  # noqa: SLF001
        query, key, value, mask, dropout, causal, dropout_mask, scale=scale, enable_gqa=grouped
    )


def _fused_scores(args: list[Any], causal: bool, scale: float) -> tuple[torch.Tensor, ...]:
    """Key and value with a head for every query head, and the scores with scale and mask."""
    query, key, value, mask = args
    repeats = query.shape[1] // key.shape[1]
    key, value = (t.repeat_interleave(repeats, 1) for t in (key, value))
    scores = query @ key.mT * scale
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    if mask is not None:
        scores = (
            scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        )
    return key, value, scores


def _fused(*args: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's CPU build has no kernel for the operator: its definition, on tensors."""
    *tensors, dropout, causal, scale, _seed, _offset = args
    if DEVICE.type != "cpu":
        if dropout:
            raise Skip("dropout: the adapter takes the generator's numbers")
        return torch.ops.aten._scaled_dot_product_fused_attention_overrideable(  # noqa: SLF001
            *tensors, 0.0, causal, False, scale=scale
        )[:2]
    if dropout:
        raise Skip("dropout draws the project's own numbers")
    _, value, scores = _fused_scores(tensors, causal, scale)
    return scores.softmax(-1).nan_to_num(0) @ value, scores.logsumexp(-1)


def _fused_backward(*args: Any) -> tuple[torch.Tensor, ...]:
    grad, *tensors, out, sums, dropout, causal, scale, seed, offset = args
    if DEVICE.type != "cpu":
        none = torch.empty(0, device=DEVICE)
        state = [torch.tensor(seed), torch.tensor(offset)]
        return torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward(  # noqa: SLF001
            grad,
            *tensors,
            [True, True, True, False],
            out,
            sums,
            none,
            none,
            tensors[0].shape[2],
            tensors[1].shape[2],
            dropout,
            causal,
            *state,
            scale=scale,
        )[:3]
    if dropout:
        raise Skip("dropout draws the project's own numbers")
    key, value, scores = _fused_scores(tensors, causal, scale)
    weights = (scores - sums.to(scores.dtype).unsqueeze(-1)).exp()
    delta = (grad * out).sum(-1, keepdim=True)
    inner = weights * (grad @ value.mT - delta) * scale

    def shared(t: torch.Tensor) -> torch.Tensor:
        return t.unflatten(1, (tensors[1].shape[1], -1)).sum(2)

    return inner @ key, shared(inner.mT @ tensors[0]), shared(weights.mT @ grad)


def _exact(t: torch.Tensor) -> torch.Tensor:
    return t.cpu().to(torch.complex128 if t.is_complex() else torch.float64)


def _svd(a: torch.Tensor, *options: Any) -> list[torch.Tensor]:
    """What is unique of singular vectors: their products, as the kit compares them."""
    full, vectors, driver = options
    u, s, vh = (
        _exact(t)
        for t in torch.ops.aten._linalg_svd(a, full, vectors, driver=driver)  # noqa: SLF001
    )
    if not vectors:
        return [u, s, vh, vh]
    k = s.shape[-1]
    return [u[..., :k] * s[..., None, :] @ vh[..., :k, :], s, u.mH @ u, vh @ vh.mH]


def _eigh(a: torch.Tensor, triangle: str, vectors: bool) -> list[torch.Tensor]:
    """As for singular vectors."""
    values, v = (
        _exact(t)
        for t in torch.ops.aten._linalg_eigh(a, triangle, vectors)  # noqa: SLF001
    )
    return [v * values[..., None, :] @ v.mH, values, v.mH @ v] if vectors else [v, values, v]


def _csr_mm(
    values: torch.Tensor, start: torch.Tensor, index: torch.Tensor, mat: torch.Tensor, reduce: str
) -> torch.Tensor:
    """The project's own operator: its definition, on tensors."""
    size = (len(start) - 1, mat.shape[0])
    if DEVICE.type != "cpu":
        csr = torch.sparse_csr_tensor(start, index, values, size, check_invariants=False)
        return csr @ mat if reduce == "sum" else torch.sparse.mm(csr, mat, reduce)
    rows = torch.repeat_interleave(torch.arange(size[0]), start.diff())
    products = values[:, None] * mat[index]
    out = torch.zeros(size[0], mat.shape[1], dtype=values.dtype)
    if reduce == "sum":
        return out.index_add(0, rows, products)
    rows = rows[:, None].expand_as(products)
    return out.scatter_reduce(0, rows, products, reduce, include_self=False)


def _product_of_type(add: Any, multiply: Any) -> Any:
    """The forms with ``out_dtype``, of which the CPU has none: on copies of that type."""

    def run(*args: Any) -> torch.Tensor:
        place = next(i for i, arg in enumerate(args) if isinstance(arg, torch.dtype))
        wide = [t.to(args[place]) for t in args[:place]]
        if place == 2:
            return multiply(*wide)
        beta, alpha = args[place + 1 :]
        return add(*wide, beta=beta, alpha=alpha)

    return run


def _scaled_mm(a: torch.Tensor, b: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (a.float() @ b.float() * scales.float() if a.itemsize < 8 else a @ b.to(a) * scales).to(
        a
    )


def _grouped_mm(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The project's own form, whose rows and columns behind the last end are zeros."""
    begins = [0, *ends.tolist()[:-1]]
    parts = [slice(begin, end) for begin, end in zip(begins, ends.tolist(), strict=True)]
    if a.ndim == b.ndim:
        return torch.stack([a[:, part] @ b[part] for part in parts])
    out = torch.zeros(a.shape[-2], b.shape[-1], dtype=a.dtype, device=a.device)
    for group, part in enumerate(parts):
        if a.ndim == 2:
            out[part] = a[part] @ b[group]
        else:
            out[:, part] = a[group] @ b[:, part]
    return out


def _dequantise(
    weight: torch.Tensor,
    scale: torch.Tensor | None,
    zero: torch.Tensor | None,
    index: torch.Tensor | None,
    kind: str,
    size: list[int],
    dtype: torch.dtype,
    group: int,
) -> torch.Tensor:
    """The project's own operator: by numpy, in float64."""
    if DEVICE.type != "cpu":
        return torch.ops.ocl.dequantise(weight, scale, zero, index, kind, size, dtype, group)
    raw = weight.contiguous().numpy()
    parts = [None if t is None else t.double().numpy() for t in (scale, zero)]
    values = quantised_weights.values(kind, raw, *size, group or size[1], *parts)
    found = torch.from_numpy(np.ascontiguousarray(values)).to(dtype)
    return found if index is None else found[index.long()]


def _quantised_mm(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor | None,
    zero: torch.Tensor | None,
    bias: torch.Tensor | None,
    kind: str,
    rows: int,
    group: int,
) -> torch.Tensor:
    if DEVICE.type != "cpu":
        return torch.ops.ocl.quantised_mm(x, weight, scale, zero, bias, kind, rows, group)
    size = [rows, x.shape[1]]
    factor = _dequantise(weight, scale, zero, None, kind, size, torch.float64, group)
    out = x.double() @ factor.T
    return (out if bias is None else out + bias.double()).to(x.dtype)


def _rows_of(offsets: torch.Tensor, count: int, from_start: bool, to_end: bool) -> torch.Tensor:
    """The project's own operator: its definition, on tensors."""
    assert not from_start or bool((offsets[..., 0] == 0).all())
    assert not to_end or bool((offsets[..., -1] == count).all())
    elements = torch.arange(count, device=offsets.device)
    return (offsets[..., None, :] <= elements[:, None]).sum(-1) - 1


def _pad(x: torch.Tensor, padding: list[int], mode: str) -> torch.Tensor:
    """The project's own form of all paddings."""
    return torch.nn.functional.pad(x, padding, mode)


def _pad_backward(grad: torch.Tensor, padding: list[int], mode: str) -> torch.Tensor:
    dims = len(padding) // 2
    sizes = list(grad.shape)
    for k in range(dims):
        sizes[-1 - k] -= padding[2 * k] + padding[2 * k + 1]
    kind = "reflection" if mode == "reflect" else "replication"
    op = getattr(torch.ops.aten, f"{kind}_pad{dims}d_backward")
    return op(grad, torch.empty(sizes, dtype=grad.dtype, device=grad.device), padding)


def _of_one_type(op: Any) -> Callable[..., torch.Tensor]:
    """PyTorch's operator refuses a mixture of types."""

    def call(*args: torch.Tensor) -> torch.Tensor:
        common = functools.reduce(torch.promote_types, (a.dtype for a in args))
        return op(*torch.broadcast_tensors(*(a.to(common) for a in args)))

    return call


def _dirichlet_grad(x: torch.Tensor, alpha: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """Where the other shapes have no positive sum, there is no such distribution."""
    result = _of_one_type(torch.ops.aten._dirichlet_grad.default)(x, alpha, total)  # noqa: SLF001
    return torch.where(total - alpha > 0, result, torch.nan)


def _rms_backward(*args: Any) -> list[torch.Tensor | None]:
    """PyTorch's CPU build has no kernel for the operator: its definition."""
    grad, x, shape, rstd, weight, mask = args
    if DEVICE.type != "cpu":
        results = torch.ops.aten._fused_rms_norm_backward(*args[:5], [True, True])  # noqa: SLF001
    else:
        dims = tuple(range(-len(shape), 0))
        normal, inner = x * rstd, grad if weight is None else grad * weight
        slope = rstd * (inner - normal * (inner * normal).mean(dims, keepdim=True))
        results = (slope, (grad * normal).sum_to_size(shape))
    return [r if wanted else None for r, wanted in zip(results, mask, strict=True)]


def _parts(t: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(t.cpu().to(torch.complex128).resolve_conj())


def _in_order(values: torch.Tensor) -> torch.Tensor:
    """Eigenvalues in the order that the kit gives them."""
    order = (values.real.double() + 0.7318 * values.imag.double()).argsort(-1)
    return _parts(values.gather(-1, order))


def _eig(a: torch.Tensor) -> list[torch.Tensor]:
    """As for singular vectors."""
    values, v = (t.cpu().to(torch.complex128) for t in torch.linalg.eig(a))
    product = torch.linalg.solve(v, v * values[..., None, :], left=False)
    return [_parts(product), _in_order(values), torch.linalg.vector_norm(v, dim=-2)]


def _ldl(a: torch.Tensor, hermitian: bool, check: bool) -> list[torch.Tensor]:
    """What the factors represent: the matrix whose lower triangle was read."""
    ld, _, info = torch.linalg.ldl_factor_ex(a, hermitian=hermitian, check_errors=check)
    lower, middle = a.cpu().tril(-1), a.cpu().diagonal(dim1=-2, dim2=-1)
    turned = hermitian and ld.is_complex()
    whole = lower + (lower.mH if turned else lower.mT)
    middle = middle.real.to(a.dtype) if turned else middle
    return [_parts(whole + torch.diag_embed(middle)), info.cpu().double()]


def _plus(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


def _recurrent(name: str, args: list[Any]) -> list[torch.Tensor | None] | None:
    """By PyTorch's own kernels; its CPU build has none for the cells of recurrent layers."""
    if DEVICE.type == "cpu":
        return None
    return list(getattr(torch.ops.aten, name)(*args))


def _lstm_cell(*args: Any) -> list[torch.Tensor]:
    if result := _recurrent("_thnn_fused_lstm_cell", args):
        return result
    inputs, hidden, cx, input_bias, hidden_bias = args
    i, f, g, o = (_plus(inputs, input_bias) + _plus(hidden, hidden_bias)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return [o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)]


def _lstm_cell_backward(*args: Any) -> list[torch.Tensor | None]:
    if result := _recurrent("_thnn_fused_lstm_cell_backward_impl", args):
        return result
    grad_hy, grad_cy, cx, cy, workspace, has_bias = args
    i, f, g, o = workspace.chunk(4, 1)
    c, zero = cy.tanh(), torch.zeros_like(cx)
    dh = zero if grad_hy is None else grad_hy
    dc = dh * o * (1 - c * c) + (zero if grad_cy is None else grad_cy)
    gates = (
        dc * g * i * (1 - i),
        dc * cx * f * (1 - f),
        dc * i * (1 - g * g),
        dh * c * o * (1 - o),
    )
    grads = torch.cat(gates, 1)
    return [grads, dc * f, grads.sum(0) if has_bias else None]


def _gru_cell(*args: Any) -> list[torch.Tensor]:
    if result := _recurrent("_thnn_fused_gru_cell", args):
        return result
    inputs, hidden, hx, input_bias, hidden_bias = args
    a, b = _plus(inputs, input_bias).chunk(3, 1), _plus(hidden, hidden_bias).chunk(3, 1)
    reset, update = (a[0] + b[0]).sigmoid(), (a[1] + b[1]).sigmoid()
    fresh = (a[2] + reset * b[2]).tanh()
    return [fresh + update * (hx - fresh), torch.cat((reset, update, fresh, hx, b[2]), 1)]


def _gru_cell_backward(*args: Any) -> list[torch.Tensor | None]:
    if result := _recurrent("_thnn_fused_gru_cell_backward", args):
        return result
    grad, workspace, has_bias = args
    reset, update, fresh, hx, inner = workspace.chunk(5, 1)
    to_fresh = grad * (1 - update) * (1 - fresh * fresh)
    to_update = grad * (hx - fresh) * update * (1 - update)
    to_reset = to_fresh * inner * reset * (1 - reset)
    inputs = torch.cat((to_reset, to_update, to_fresh), 1)
    hidden = torch.cat((to_reset, to_update, to_fresh * reset), 1)
    sums = [inputs.sum(0), hidden.sum(0)] if has_bias else [None, None]
    return [inputs, hidden, grad * update, *sums]


SPECIAL = {
    "_thnn_fused_lstm_cell.out": _lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl.out": _lstm_cell_backward,
    "_thnn_fused_gru_cell.out": _gru_cell,
    "_thnn_fused_gru_cell_backward.out": _gru_cell_backward,
    "_ocl_csr_mm.out": _csr_mm,
    "mm.dtype_out": _product_of_type(torch.addmm, torch.mm),
    "addmm.dtype_out": _product_of_type(torch.addmm, torch.mm),
    "bmm.dtype_out": _product_of_type(torch.baddbmm, torch.bmm),
    "baddbmm.dtype_out": _product_of_type(torch.baddbmm, torch.bmm),
    "_ocl_scaled_mm.out": _scaled_mm,
    "_ocl_grouped_mm.out": _grouped_mm,
    "_ocl_rows_of.out": _rows_of,
    "_ocl_quantised_mm.out": _quantised_mm,
    "_ocl_dequantise.out": _dequantise,
    "_ocl_pad.out": _pad,
    "_ocl_pad_backward.out": _pad_backward,
    "_fused_rms_norm_backward.out": _rms_backward,
    "_dirichlet_grad.out": _dirichlet_grad,
    "_standard_gamma_grad.out": _of_one_type(torch.ops.aten._standard_gamma_grad.default),  # noqa: SLF001
    "_linalg_eigh.eigenvalues": _eigh,
    "_linalg_svd.U": _svd,
    "linalg_eig.out": _eig,
    "linalg_eigvals.out": lambda a: [_in_order(torch.linalg.eigvals(a).cpu())],
    "linalg_ldl_factor_ex.out": _ldl,
    "_scaled_dot_product_attention_math.out": _attention,
    "_scaled_dot_product_fused_attention_overrideable.out": _fused,
    "_scaled_dot_product_fused_attention_overrideable_backward.out": _fused_backward,
    "copy.out": _copy,
    "rsub.Tensor_out": lambda a, b, alpha: torch.rsub(
        a, b if isinstance(b, torch.Tensor) else wrapped(b, [a]), alpha=alpha
    ),
    # PyTorch's out-variant wants an output of the unreduced shape.
    "binary_cross_entropy.out": torch.ops.aten.binary_cross_entropy.default,
    "hardswish_backward.out": torch.ops.aten.hardswish_backward.default,
    "log_sigmoid.out": torch.nn.functional.logsigmoid,
    # The buffer argument is only read by PyTorch's own CPU kernel, which wrote it: the formula
    # itself depends on the input alone.
    "log_sigmoid_backward.grad_input": lambda g, x, _b: g * torch.sigmoid(-x),
}


def wrapped(number: complex, args: list[Any]) -> torch.Tensor:
    """A number where PyTorch wants a tensor, of a type that promotes as the number would."""
    tensors = (t for a in args for t in (a if isinstance(a, list) else [a]))
    like = next(t for t in tensors if isinstance(t, torch.Tensor))
    dtype = torch.tensor(number).dtype  # bool, int64, float32 or complex64
    kinds = [t.is_complex * 2 + t.is_floating_point for t in (like.dtype, dtype)]
    same_kind = kinds[0] >= kinds[1]
    if same_kind and (like.dtype != torch.bool or dtype == torch.bool):
        dtype = like.dtype
    return torch.tensor(number, dtype=dtype, device=like.device)


@functools.cache
def has_torchvision() -> bool:
    return torchvision_library.load() is not None


def find(name: str) -> tuple[Any, bool]:
    """PyTorch's operator and whether it takes `out` arguments."""
    library, _, base = name.rpartition("::")
    base, _, overload = base.partition(".")
    if library == "torchvision" and not has_torchvision():
        raise Skip("torchvision is not installed")
    packet: Any = getattr(getattr(torch.ops, library or "aten"), base, None)
    if packet is None:
        raise Skip(f"torch.ops.{library or 'aten'} has no {base}")
    # Outputs that output_mask leaves out cannot be passed as `out`.
    masked = base.endswith("_backward") and "output_mask" in str(packet.default._schema)  # noqa: SLF001
    listed = base.startswith(
        "_foreach_"
    )  # as many outputs as tensors: the functional form has them
    if overload in packet.overloads() and not masked and not listed:
        return getattr(packet, overload), True
    functional = "default" if overload in ("out", "") else overload.removesuffix("_out")
    for candidate in (functional, "default"):
        if candidate in packet.overloads():
            return getattr(packet, candidate), False
    raise Skip(f"no overload like {name} in {packet.overloads()}")


def call(record: Record, args: list[Any], outs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Runs the operator in PyTorch; returns outputs, then updated arguments."""
    name = record["op"]
    if name in SPECIAL:
        result = SPECIAL[name](*args)
        results = [result] if isinstance(result, torch.Tensor) else result
        return [None if r is None else r.cpu().resolve_conj() for r in results]
    op, takes_out = find(name)
    schema = op._schema  # noqa: SLF001 - the only description of an overload
    names = [a.name for a in schema.arguments if not a.is_out]
    if len(names) < len(args):
        raise Skip(f"PyTorch's {name} has {len(names)} arguments, ours {len(args)}")
    # The functional forms fail to return what a mask leaves out: ask for all, drop it afterwards.
    at = names.index("output_mask") if "output_mask" in names else None
    mask = args[at] if at is not None else None
    if mask is not None:
        args = [*args[:at], [True] * len(mask), *args[at + 1 :]]
    positional, keywords = [], {}
    for a, value in zip((a for a in schema.arguments if not a.is_out), args, strict=False):
        if str(a.type) == "Tensor" and isinstance(value, (bool, int, float, complex)):
            value = wrapped(value, args)
        if a.name in FLOAT32_ARGUMENTS and value is not None:
            value = value.float()
        if a.kwarg_only:
            keywords[a.name] = value
        else:
            positional.append(value)
    if takes_out:
        targets = [
            torch.empty(o.shape, dtype=o.dtype, device=DEVICE) for o in outs[: len(schema.returns)]
        ]
        out_names = [a.name for a in schema.arguments if a.is_out]
        keywords |= dict(zip(out_names, targets, strict=True))
    result = op(*positional, **keywords)
    results = [result] if isinstance(result, torch.Tensor) else list(result or [])
    if record["mutates"] and name.partition(".")[0].endswith("_"):
        results = []  # in place: nothing, or an argument once more
    if mask is not None:
        results = [r if wanted else None for r, wanted in zip(results, mask, strict=True)]
    for i in record["mutates"]:
        results += args[i] if isinstance(args[i], list) else [args[i]]
    return [None if r is None else r.cpu().resolve_conj() for r in results]


def all_of(masks: Iterable[np.ndarray]) -> np.ndarray:
    return np.logical_and.reduce(list(masks))


def agree(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    bound: np.ndarray | None,
    excused: np.ndarray | None,
    error: float,
) -> str:
    """Empty if all elements agree, else the first difference in words."""
    if list(ours.shape) != list(theirs.shape):
        return f"shape {list(ours.shape)}, PyTorch has {list(theirs.shape)}"
    if ours.is_complex():
        a, b = (
            ours.to(torch.complex128).numpy().ravel(),
            theirs.to(torch.complex128).numpy().ravel(),
        )
        # The distance in the plane, as the kit judges it; an infinite part must be the same.
        with np.errstate(invalid="ignore", over="ignore"):
            limit = np.zeros(a.shape) if bound is None else bound + error * (1 + np.abs(b))
            rounded = theirs.to(ours.dtype).to(torch.complex128).numpy().ravel()
            near = np.abs(a - b) <= limit
            infinite = np.isinf(b.real) | np.isinf(b.imag)
            near |= infinite & all_of(
                ~np.isinf(p) | (p == q) for p, q in ((b.real, a.real), (b.imag, a.imag))
            )
        wrong = ~((a == rounded) | near | (np.isnan(a) & np.isnan(b)))
        if excused is not None:
            wrong &= ~excused
    elif not ours.is_floating_point():
        a, b = ours.to(torch.int64).numpy().ravel(), theirs.to(ours.dtype).to(torch.int64)
        b = b.numpy().ravel()
        wrong = a != b
    else:
        a = ours.double().numpy().ravel()
        b = theirs.double().numpy().ravel()
        rounded = theirs.to(ours.dtype).double().numpy().ravel()
        with np.errstate(invalid="ignore", over="ignore"):
            limit = np.zeros_like(a) if bound is None else bound + error * (1 + np.abs(b))
            near = np.abs(a - b) <= limit
            # A result near the end of the range may round to infinity or stay below.
            edge = torch.from_numpy(b + np.copysign(limit, a)).to(ours.dtype).double().numpy()
            near |= np.isinf(a) & (edge == a)
        wrong = ~((a == rounded) | near | (np.isnan(a) & np.isnan(b)))
        if excused is not None:
            wrong &= ~excused
    if not wrong.any():
        return ""
    i = int(np.argmax(wrong))
    tolerance = "" if bound is None else f" +- {bound[i]:.3g}"
    return f"element {i} is {a[i]!r}, PyTorch has {b[i]!r}{tolerance} ({wrong.sum()} of {a.size})"


def excuses(known: Known, record: Record, blob: bytes, shape: list[int]) -> np.ndarray:
    """Elements of the result whose arguments PyTorch is no judge of."""
    mask = np.zeros(shape, bool)
    for j in record["args"]:
        value = argument(j, blob)
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue
        if known.infinite:
            mask |= torch.isinf(value).numpy()
        if known.subnormal:
            mask |= (value.abs() < torch.finfo(value.dtype).tiny).logical_and(value != 0).numpy()
    return mask.ravel()


def compare(record: Record, blob: bytes, theirs: list[torch.Tensor]) -> str:
    """The first difference of all outputs; empty if there is none."""
    for k, (out, b) in enumerate(zip(record["outs"], record["bounds"], strict=True)):
        if k >= len(theirs):
            raise Skip(f"PyTorch gives {len(theirs)} outputs")
        bound = None
        if b["bytes"]:
            bound = np.frombuffer(blob, np.float64, b["bytes"] // 8, b["at"])
            bound = bound * (1 if DEVICE.type == "cpu" else 2)
        ours = tensor(out, blob)
        if theirs[k] is None:  # an output that was not asked for
            if ours.numel():
                return f"output {k} has elements, PyTorch has none"
            continue
        known = KNOWN.get(record["op"], Known(""))
        some = (known.infinite or known.subnormal) and DEVICE.type == "cpu"
        excused = excuses(known, record, blob, list(ours.shape)) if some else None
        if difference := agree(ours, theirs[k], bound, excused, known.error):
            return f"output {k}: {difference}"
    return ""


def judge(record: Record, blob: bytes) -> str:
    """Replays one record; returns the difference, or nothing."""
    outs = [tensor(o, blob) for o in record["outs"]]
    if record["random"]:
        raise Skip("random numbers are the project's own (Philox, documented ranges)")
    if DEVICE.type != "cpu":
        try:
            return compare(
                record, blob, call(record, [move(argument(a, blob)) for a in record["args"]], outs)
            )
        except (RuntimeError, NotImplementedError, IndexError, TypeError) as error:
            if record.get("out_dtype") and "Expected out tensor to have dtype" in str(error):
                raise Skip("PyTorch itself wants outputs of the inferred type here") from error
            if "does not have an identity" in str(error):
                raise Skip("PyTorch itself refuses it: an empty extreme has no identity") from error
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    differences = []
    for wide in (False, True):
        args = [argument(a, blob) for a in record["args"]]
        targets = outs
        if wide:
            args = [widen(a) for a in args]
            targets = [widen(o) for o in outs]
        try:
            difference = compare(record, blob, call(record, args, targets))
        except (RuntimeError, NotImplementedError, IndexError, TypeError) as error:
            text = str(error).splitlines()[0]
            if wide and differences:
                break
            differences.append(Skip(f"PyTorch refuses: {text}"))
            continue
        if not difference:
            return ""
        differences.append(difference)
    if isinstance(differences[0], Skip):
        if len(differences) > 1 and isinstance(differences[1], str):
            return f"(float64) {differences[1]}"
        raise differences[0]
    return differences[0]


Table = dict[str, Counter[str]]  # by operator: counts


def judge_all(
    file: str,
    only: str,
    judge: Callable[[Record, bytes], str],
    show: Callable[[Record, str], None],
) -> tuple[Table, Table]:
    """Judges a file's records of the operators that `only` fits: how many agree, mismatch (each is
    shown) and are skipped, and the reasons for those."""
    table: Table = defaultdict(Counter)
    reasons: Table = defaultdict(Counter)
    for record, blob in records(file):
        name = record["op"]
        if not re.search(only, name):
            continue
        try:
            difference = judge(record, blob)
        except Skip as reason:
            table[name]["skipped"] += 1
            reasons[name][str(reason)] += 1
            continue
        table[name]["mismatch" if difference else "agrees"] += 1
        if difference:
            show(record, difference)
    return table, reasons


def main() -> int:
    """Replays a file and prints a table."""
    parser = argparse.ArgumentParser(description="Replays recorded cases with PyTorch on the CPU")
    parser.add_argument("file")
    parser.add_argument("--only", default="", help="regular expression for operator names")
    parser.add_argument("--verbose", action="store_true", help="print every mismatch")
    parser.add_argument(
        "--device",
        default="cpu",
        choices=["cpu", "ocl"],
        help="the PyTorch device that runs the cases",
    )
    options = parser.parse_args()
    if options.device == "ocl":
        import torch_ocl  # noqa: F401, PLC0415  registers the device

        global DEVICE  # noqa: PLW0603
        DEVICE = torch.device("ocl")
    torch.set_num_threads(2)
    shown: Counter[str] = Counter()

    def show(record: Record, difference: str) -> None:
        name = record["op"]
        shown[name] += 1
        if not options.verbose and shown[name] > 3:
            return
        shape = [a if not isinstance(a, dict) else a.get("sizes", a) for a in record["args"]]
        print(f"MISMATCH {name} {record['dtype']} seed {record['seed']}: {difference}")
        print(f"         arguments {shape}")

    table, skipped = judge_all(options.file, options.only, judge, show)
    report(table, skipped)
    return 1 if any(row["mismatch"] for row in table.values()) else 0


def report(table: Table, skipped: Table) -> None:
    """Prints the table, the operators that could not be replayed, and totals."""
    print(f"{'operator':<46}{'agrees':>9}{'mismatch':>9}{'skipped':>9}")
    for name, row in sorted(table.items()):
        print(f"{name:<46}{row['agrees']:>9}{row['mismatch']:>9}{row['skipped']:>9}")
    for name, known in KNOWN.items():
        if name in table:
            print(f"PyTorch is no judge of {name} everywhere: it {known.why}")
    if skipped:
        print("not replayed:")
    for name, reasons in sorted(skipped.items()):
        for reason, count in reasons.items():
            print(f"  {name}: {count} x {reason}")
    total = sum(table.values(), Counter())
    print(
        f"{len(table)} operators: {total['agrees']} agree, {total['mismatch']} mismatch,"
        f" {total['skipped']} not replayed (torch {torch.__version__})"
    )


if __name__ == "__main__":
    sys.exit(main())
