"""Scaled dot product attention by the fused kernels, forward and backward."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

from rows import Result, Row, Scale, Tensor


def _forward_peer(masked: bool, **options: Any) -> Any:
    def make(torch: ModuleType, t: Any) -> Any:
        mask = t[3] if masked else None
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            t[0], t[1], t[2], attn_mask=mask, **options
        )

    return make


def _backward_peer(masked: bool, **options: Any) -> Any:
    def make(torch: ModuleType, t: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in t[:3]]
        mask = t[3] if masked else None
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=mask, **options)
        return lambda: torch.autograd.grad(out, leaves, t[-1], retain_graph=True)

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
    mask: str = "",
    dropout: float = 0.0,
    **more: Any,
) -> list[Row]:
    """Forward and backward. `mask`: "mask", numbers for each query and key of a batch, or
    "padding", numbers for each key. What dropout leaves is drawn, so that it is not compared."""
    shape = (b, heads, length, head)
    q, k, v = (Tensor(shape, dtype) for _ in range(3))
    bias = Tensor((b, 1, length if mask == "mask" else 1, length), dtype) if mask else None
    kind = " ".join(
        ["causal"] * causal + [mask] * bool(mask) + [f"dropout {dropout}"] * (dropout > 0)
    )
    label = f"{b}x{heads}x{length}x{head} {dtype} {kind}".rstrip()
    group = f"{'masked ' if mask or dropout else ''}attention"
    peer = {"masked": bias is not None, "is_causal": causal, "dropout_p": dropout}
    flops = 4.0 * b * heads * length**2 * head * (0.5 if causal else 1)
    tail = [dropout, causal, None, 0, 0]
    sums = Tensor(shape[:3])
    tolerance = 1e-4 if dtype == "float32" else -1.0
    forward = Row(
        family,
        f"forward {label}",
        "_scaled_dot_product_fused_attention_overrideable.out",
        [q, k, v, bias, *tail],
        [Tensor(shape, dtype), sums],
        flops=flops,
        bytes=4.0 * q.bytes,
        check=() if dropout else (0,),
        peer=_forward_peer(**peer),
        group=f"{group} forward {dtype}",
        tolerance=tolerance,
        **more,
    )
    if not backward:
        return [forward]
    back = Row(
        family,
        f"backward {label}",
        "_scaled_dot_product_fused_attention_overrideable_backward.out",
        [Tensor(shape, dtype), q, k, v, bias, Result(0), Result(1), *tail],
        [Tensor(shape, dtype) for _ in range(3)],
        before=forward,
        check=() if dropout else (0, 1, 2),
        flops=2.5 * flops,
        bytes=8.0 * q.bytes,
        peer=_backward_peer(**peer),
        group=f"{group} backward {dtype}",
        tolerance=1e-4 if dtype == "float32" else 3e-2,
        **more,
    )
    return [forward, back]


def masked(scale: Scale) -> list[Row]:
    """With masks and dropout, as models are trained."""
    dtype = scale.pick("float32", "bfloat16")
    shapes = scale.pick(
        [(4, 12, 512, 64)],
        [(8, 12, 1024, 64), (4, 16, 2048, 128), (2, 16, 4096, 64), (2, 16, 4096, 128)],
    )
    kinds: list[dict[str, Any]] = [
        {"mask": mask, "dropout": dropout}
        for mask, dropout in itertools.product(("padding", "mask"), (0.0, 0.1))
    ]
    kinds += [{"dropout": 0.1}, {"dropout": 0.1, "causal": True}]
    return [
        row
        for shape in shapes
        for kind in kinds
        for row in attention(*shape, dtype, family="masks", **kind)
    ]


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
