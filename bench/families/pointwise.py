"""Elementwise operators, copies and transposes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rows import Row, Scale, Tensor

MI = 1 << 20
UNARY = {
    "exp": "exp.out",
    "tanh": "tanh.out",
    "sigmoid": "sigmoid.out",
    "gelu": "gelu.out",
    "silu": "silu.out",
    "log": "log.out",
    "sin": "sin.out",
    "relu": "relu.out",
    "sqrt": "sqrt.out",
    "rsqrt": "rsqrt.out",
}
TRANSCENDENTAL = ("exp", "tanh", "sigmoid", "gelu", "silu", "log", "sin")


def copy(
    name: str, shape: tuple[int, ...], dtype: str = "float32", transposed: bool = False, **more: Any
) -> Row:
    source = Tensor(shape, dtype, transposed=transposed)
    return Row(
        "pointwise",
        name,
        "copy.out",
        [Tensor(shape, dtype), source, False],
        [Tensor(shape, dtype)],
        bytes=2.0 * source.bytes,
        peer=lambda torch, t: _copier(torch, t[1]),
        tolerance=0.0,
        **more,
    )


def _copier(torch: ModuleType, source: Any) -> Any:
    out = torch.empty(source.shape, dtype=source.dtype, device=source.device)
    return lambda: out.copy_(source)


def add(n: int, dtype: str = "float32", **more: Any) -> Row:
    a, b = Tensor((n,), dtype), Tensor((n,), dtype)
    return Row(
        more.pop("family", "pointwise"),
        more.pop("name", f"add {_count(n)} {dtype}"),
        "add.out",
        [a, b, 1],
        [Tensor((n,), dtype)],
        flops=n,
        **more,
    )


def _count(n: int) -> str:
    return f"{n >> 20}Mi" if n >= MI else str(n)


def unary(name: str, n: int, dtype: str = "float32") -> Row:
    draw = "positive" if name in ("sqrt", "rsqrt", "log") else "normal"
    group = "transcendental" if name in TRANSCENDENTAL else "bandwidth"
    args = [Tensor((n,), dtype, draw), *(["none"] if name == "gelu" else [])]
    return Row(
        "pointwise",
        f"{name} {_count(n)} {dtype}",
        UNARY[name],
        args,
        [Tensor((n,), dtype)],
        flops=n,
        group=f"{group} {dtype}",
    )


def broadcast(r: int, c: int) -> Row:
    return Row(
        "pointwise",
        f"add {r}x{c} + {c}",
        "add.out",
        [Tensor((r, c)), Tensor((c,)), 1],
        [Tensor((r, c))],
        flops=r * c,
        group="bandwidth float32",
    )


def rows(scale: Scale) -> list[Row]:
    n, half = scale.pick(4, 16) * MI, ("float16", "bfloat16")
    big = 64 * MI
    result = [copy("copy 64Mi float32", (big,), group="copy"), add(big, group="bandwidth float32")]
    result += [add(scale.pick(4, 128) * MI, dtype, group=f"bandwidth {dtype}") for dtype in half]
    result += [unary(name, n) for name in UNARY]
    result += [unary("gelu", n, dtype) for dtype in half]
    result += [broadcast(4096, 4096)]
    result += [
        copy(f"transpose {size}", (size, size), transposed=True, group="copy")
        for size in (1024, 4096)
    ]
    result += [copy("permute 64x512x12x64", (64, 64, 512 * 12), transposed=True, group="copy")]
    return result
