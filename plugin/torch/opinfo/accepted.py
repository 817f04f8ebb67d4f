"""Results that may differ from the CPU's and still be right: freedoms that ATen leaves, and
ill-conditioned gradients.

Asked only about what did not pass the plain comparison. Each rule checks what ATen does promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

EPS = torch.finfo(torch.float32).eps
Tensors = list[torch.Tensor]


def argument(sample: SampleInput, position: int, name: str, default: Any) -> Any:
    """An argument of the call, `position` counted after self."""
    return (
        sample.args[position] if len(sample.args) > position else sample.kwargs.get(name, default)
    )


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.equal(a.nan_to_num(), b.nan_to_num())
        and torch.equal(a.isnan(), b.isnan())
    )


def exact(t: torch.Tensor) -> torch.Tensor:
    return t.detach().to(torch.complex128 if t.is_complex() else torch.float64)


def picks(values: torch.Tensor, indices: torch.Tensor, source: torch.Tensor, dim: int) -> bool:
    """Are these valid and distinct indices of exactly these values?"""
    if source.dim() == 0:
        values, indices, source, dim = values.reshape(1), indices.reshape(1), source.reshape(1), 0
    size = source.shape[dim]
    if (
        indices.dtype != torch.int64
        or indices.shape != values.shape
        or (indices.numel() and not 0 <= indices.min() <= indices.max() < size)
    ):
        return False
    marks = torch.zeros(source.shape, dtype=torch.int64).scatter_add_(
        dim, indices, torch.ones_like(indices)
    )
    return bool((marks <= 1).all()) and same(source.gather(dim, indices), values)


def order(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """sort and argsort that were not asked to be stable: equal elements may lie in any order."""
    stable = sample.kwargs.get("stable", False)
    dim = argument(sample, 0, "dim", -1)
    if stable or not isinstance(dim, int):
        return False
    indices = got[-1]
    wanted = (
        want[0]
        if op.name == "sort"
        else sample.input.gather(dim, want[0])
        if sample.input.dim()
        else sample.input
    )
    values = got[0] if op.name == "sort" else wanted
    return same(values, wanted) and picks(values, indices, sample.input, dim)


def largest(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """topk: which of equal elements is taken is open; so is the order where sorted=False."""
    dim = argument(sample, 1, "dim", -1)
    ordered = argument(sample, 3, "sorted", True)
    a, b = (t if ordered or t.dim() == 0 else t.sort(dim)[0] for t in (got[0], want[0]))
    return same(a, b) and picks(got[0], got[1], sample.input, dim)


def one_of_equals(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """kthvalue, mode, median: the value is defined, and the index names any element that has it."""
    first = 1 if op.name == "kthvalue" else 0
    dim, keep = argument(sample, first, "dim", -1), argument(sample, first + 1, "keepdim", False)
    values, indices = (t if keep or sample.input.dim() == 0 else t.unsqueeze(dim) for t in got)
    return len(got) == 2 and same(got[0], want[0]) and picks(values, indices, sample.input, dim)


def integer_steps(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """linspace of integers: ATen's formula truncates start + i * step once. Its vector loop
    truncates the first number of each vector before it adds the others' steps, so that some results
    are one less, depending on the processor."""
    if want[0].dtype.is_floating_point or want[0].dtype.is_complex:
        return False
    start, end, steps = int(sample.input), int(sample.args[0]), want[0].numel()
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    exact = [
        math.trunc(start + step * i)
        if i < steps // 2 or steps == 1
        else math.trunc(end - step * (steps - 1 - i))
        for i in range(steps)
    ]
    return same(
        got[0], torch.tensor(exact, dtype=torch.int64).to(want[0].dtype).reshape(want[0].shape)
    )


def singular_vectors(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """Singular vectors have any sign, or phase, and turn where singular values are equal: they are
    orthonormal, and make the matrix up. Errors of some eps times the root of the size and the
    largest value."""
    (u, s, v), matrix = (exact(t) for t in got), exact(sample.input)
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(got, want)):
        return False
    if s.numel() == 0:
        return same(got[1], want[1]) and orthonormal(u) and orthonormal(v)
    bound = 8 * torch.finfo(got[0].dtype).eps * max(matrix.shape[-2:]) ** 0.5
    if op.name == "linalg.svd":
        v = v.mH
    k = s.shape[-1]
    product = (u[..., :k] * s[..., None, :]) @ v[..., :k].mH
    limit = bound * want[1].double().amax()
    near = ((s - want[1]).abs() <= limit).all() and ((product - matrix).abs() <= limit).all()
    return bool(near) and orthonormal(u, bound) and orthonormal(v, bound)


def eigenvectors(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """Eigenvectors have any sign, or phase, and turn where eigenvalues are equal. Of a Hermitian
    matrix they are orthonormal, and A V = V L, within errors as of singular vectors."""
    matrix = exact(sample.input)
    # PyTorch's samples are Hermitian only for the triangle that is read.
    lower = argument(sample, 0, "UPLO", "L") in ("L", "l")
    matrix = matrix.tril() + matrix.tril(-1).mH if lower else matrix.triu() + matrix.triu(1).mH
    matrix = (matrix + matrix.mH) / 2  # the imaginary parts of the diagonal are not read either
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(got, want)):
        return False
    if got[0].numel() == 0:
        return True
    values, vectors = (exact(t) for t in got)
    eps = torch.finfo(got[0].dtype).eps
    bound = 8 * eps * matrix.shape[-1] ** 0.5
    limit = bound * want[0].double().abs().amax()
    rest = matrix @ vectors - vectors * values[..., None, :]
    near = ((values - want[0]).abs() <= limit).all() and (rest.abs() <= limit).all()
    return bool(near) and orthonormal(vectors, bound)


def nearest_bytes(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """Resampled bytes are rounded to the nearest, where the CPU truncates some. Coordinates up to
    300 in float are off by 3e-5, which moves a sum of bytes by 0.01."""
    image = sample.input
    if image.dtype != torch.uint8:
        return False
    right = op(image.double(), *sample.args, **sample.kwargs).clamp(0, 255)
    return got[0].dtype == torch.uint8 and bool(((got[0] - right).abs() <= 0.51).all())


def statistics(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """Means and deviations that norms of 16-bit numbers keep for the gradient are float32 here, as
    with CUDA; the CPU rounds them to the input's type."""
    if want[0].dtype not in (torch.float16, torch.bfloat16):
        return False
    atol = 4 * torch.finfo(want[0].dtype).eps
    return all(
        a.shape == b.shape
        and (a.dtype == b.dtype or (i > 0 and a.dtype == torch.float32))
        and torch.allclose(exact(a), exact(b), rtol=atol, atol=atol, equal_nan=True)
        for i, (a, b) in enumerate(zip(got, want))
    )


def orthonormal(columns: torch.Tensor, bound: float = 0.0) -> bool:
    identity = torch.eye(columns.shape[-1], dtype=columns.dtype)
    return bool(((columns.mH @ columns - identity).abs() <= bound).all())


def general_eigenvectors(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    """Eigenvalues come in any order, and their vectors have any factor of modulus 1. A V = V L
    within errors of some eps times the norm; values, whose errors grow by their condition numbers,
    are as near to the CPU's as those of a matrix that far off can be expected to be."""
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(got, want)):
        return False
    if got[0].numel() == 0:
        return True
    matrix = sample.input.detach().cpu().to(torch.complex128)
    eps = torch.finfo(sample.input.dtype).eps
    n = matrix.shape[-1]
    limit = 16 * max(n, 4) ** 0.5 * eps * torch.linalg.matrix_norm(matrix)
    own, other = (t[0].to(torch.complex128) for t in (got, want))
    distance = (own[..., :, None] - other[..., None, :]).abs()
    reach = n * limit * torch.linalg.cond(torch.linalg.eig(matrix)[1])
    if not bool((distance.amin(-1).amax(-1) <= reach).all()):
        return False
    if len(got) == 1:
        return True
    vectors = got[1].to(torch.complex128)
    rest = (matrix @ vectors - vectors * own[..., None, :]).abs().amax((-2, -1))
    lengths = torch.linalg.vector_norm(vectors, dim=-2)
    return bool((rest <= limit).all()) and bool(((lengths - 1).abs() <= (8 + n / 4) * eps).all())


RULES = {
    "sort": order,
    "argsort": order,
    "topk": largest,
    "kthvalue": one_of_equals,
    "mode": one_of_equals,
    "median": one_of_equals,
    "nanmedian": one_of_equals,
    "linspace": integer_steps,
    "svd": singular_vectors,
    "linalg.svd": singular_vectors,
    "linalg.eigh": eigenvectors,
    "linalg.eig": general_eigenvectors,
    "linalg.eigvals": general_eigenvectors,
    "nn.functional.interpolate": nearest_bytes,
    "nn.functional.upsample_bilinear": nearest_bytes,
    "_upsample_bilinear2d_aa": nearest_bytes,
    "native_layer_norm": statistics,
    "native_group_norm": statistics,
    "native_batch_norm": statistics,
    "_native_batch_norm_legit": statistics,
    "_batch_norm_with_update": statistics,
}


def accepts(op: OpInfo, sample: SampleInput, got: Tensors, want: Tensors) -> bool:
    rule = RULES.get(op.name)
    return (
        rule is not None
        and len(got) == len(want)
        and rule(op, sample, [t.detach().cpu() for t in got], want)
    )


# Relative error that autograd's formula may have in float32, beyond the usual: k * eps * condition,
# k from its roundings.
def atanh_bound(sample: SampleInput) -> torch.Tensor:
    # grad / (1 - x^2): one ulp in x^2 grows by x^2 / (1 - x^2).
    x = sample.input.detach().double()
    return 1 * EPS * x * x / (1 - x * x).abs()


def logcumsumexp_bound(sample: SampleInput) -> torch.Tensor:
    # exp of a sum of logarithms as large as x, of which n are added in the scans and 4 in the
    # formula, half an ulp each.
    x = sample.input.detach().double()
    n = x.shape[sample.args[0]] if x.dim() else 1
    return 0.5 * (n + 4) * EPS * x.abs().max() if x.numel() else x


BOUNDS = {"atanh": atanh_bound, "logcumsumexp": logcumsumexp_bound}


def accepts_gradient(op: OpInfo, sample: SampleInput, got: Tensors, exact: Tensors) -> bool:
    """`exact` is float64's answer, rounded."""
    bound = BOUNDS.get(op.name)
    if bound is None or len(got) != 1 or len(exact) != 1 or got[0].shape != exact[0].shape:
        return False
    a, b = got[0].detach().cpu().double(), exact[0].detach().double()
    error = (a - b).abs() <= 1e-4 + (1.3e-5 + bound(sample)) * b.abs()
    return bool((error | (a == b) | (a.isnan() & b.isnan())).all())


# Chains so ill-conditioned that a rounding early on decides: the result must be right for arguments
# that differ by k * eps, k being the roundings on the way to the sensitive step.
CONDITIONED = {
    # scores of some thousands (samples have elements up to 9, and no scaling) enter exp: two
    # projections of 4 products and a bias, and a product of 2, each twice
    "nn.functional.multi_head_attention_forward": 12,
    # exponentials of matrices of norms near 35
    "matrix_exp": 1,
    # the gradient undoes reflectors one by one; random ones are not orthogonal and lose digits each
    # (the CPU needs 197)
    "linalg.householder_product": 256,
    # the gradient solves two more systems with the factors (the CPU needs 13)
    "linalg.lstsq": 16,
}


WIDE = (torch.float64, torch.complex128)


def nudged(value: Any, generator: torch.Generator) -> Any:
    """float64 and complex128 tensors with each element off by one float32 eps, up or down."""
    if isinstance(value, torch.Tensor):
        signs = torch.randint(0, 2, value.shape, generator=generator) * 2 - 1
        return value * (1 + EPS * signs) if value.dtype in WIDE else value
    if isinstance(value, dict):
        return {k: nudged(v, generator) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(nudged(v, generator) for v in value)
    return value


def accepts_conditioned(
    op: OpInfo, got: Tensors, evaluate: Callable[[Callable[[Any], Any]], Tensors]
) -> bool:
    """`evaluate` gives float64's answer for arguments changed by the function given."""
    k = CONDITIONED.get(op.name)
    if k is None:
        return False
    generator = torch.Generator().manual_seed(1)
    wanted = evaluate(lambda value: value)
    trials = [evaluate(lambda value: nudged(value, generator)) for _ in range(8)]
    for i, (a, b) in enumerate(zip(got, wanted)):
        a = exact(a.cpu())
        spread = torch.stack([(t[i] - b).abs() for t in trials]).amax(0)
        if not bool(((a - b).abs() <= 1e-4 + 1.3e-5 * b.abs() + k * spread).all()):
            return False
    return True
