"""Scaled dot product attention by the fused kernels, forward and backward."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rows import Result, Row, Scale, Tensor


def _forward_peer(causal: bool) -> Any:
    return lambda torch, t: (
        lambda: torch.nn.functional.scaled_dot_product_attention(t[0], t[1], t[2], is_causal=causal)
    )


def _backward_peer(causal: bool) -> Any:
    def make(torch: ModuleType, t: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in t[:3]]
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
        return lambda: torch.autograd.grad(out, leaves, t[3], retain_graph=True)

    return make


def attention(
    b: int,
    heads: int,
    length: int,
    head: int,
    dtype: str = "float32",
    causal: bool = False,
    backward: bool = True,
    family: str = "attention",
    **more: Any,
) -> list[Row]:
    shape = (b, heads, length, head)
    q, k, v = (Tensor(shape, dtype) for _ in range(3))
    label = f"{b}x{heads}x{length}x{head} {dtype}{' causal' if causal else ''}"
    flops = 4.0 * b * heads * length**2 * head * (0.5 if causal else 1)
    tail = [0.0, causal, None, 0, 0]
    sums = Tensor(shape[:3])
    tolerance = 1e-4 if dtype == "float32" else -1.0
    forward = Row(
        family,
        f"forward {label}",
        "_scaled_dot_product_fused_attention_overrideable.out",
        [q, k, v, None, *tail],
        [Tensor(shape, dtype), sums],
        flops=flops,
        bytes=4.0 * q.bytes,
        peer=_forward_peer(causal),
        group=f"attention forward {dtype}",
        tolerance=tolerance,
        **more,
    )
    if not backward:
        return [forward]
    back = Row(
        family,
        f"backward {label}",
        "_scaled_dot_product_fused_attention_overrideable_backward.out",
        [Tensor(shape, dtype), q, k, v, None, Result(0), Result(1), *tail],
        [Tensor(shape, dtype) for _ in range(3)],
        before=forward,
        check=(0, 1, 2),
        flops=2.5 * flops,
        bytes=8.0 * q.bytes,
        peer=_backward_peer(causal),
        group=f"attention backward {dtype}",
        tolerance=1e-4 if dtype == "float32" else 3e-2,
        **more,
    )
    return [forward, back]


def rows(scale: Scale) -> list[Row]:
    if not scale.gpu:
        shapes = [(1, 12, 128, 64), (4, 12, 512, 64), (1, 8, 1024, 128)]
        result = [r for s in shapes for r in attention(*s)] + attention(
            1, 12, 1024, 64, causal=True
        )
        return result + [
            r
            for dtype in ("float16", "bfloat16")
            for r in attention(1, 8, 512, 64, dtype, backward=False)
        ]
    result = []
    for dtype in ("float16", "bfloat16"):
        for head, heads in ((64, 32), (128, 16)):
            result += attention(4, heads, 4096, head, dtype) + attention(
                1, heads, 16384, head, dtype, causal=True
            )
        result += attention(1, 16, 16384, 128, dtype)
    return (
        result
        + attention(8, 12, 512, 64)
        + attention(4, 16, 4096, 64)
        + attention(4, 16, 4096, 64, causal=True)
    )
