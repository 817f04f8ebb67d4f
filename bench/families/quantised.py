"""Products with quantised weights, by few rows and many. The peer is PyTorch's own product of the
format where it has one for the device, else the layer of x's type with the same values."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

from rows import Row, Scale, Tensor

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/oracle"))
from quantised_weights import BLOCKS, values

GROUP = 64
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip


def _linear(torch: Any, x: Any, weight: Any) -> Callable[[], Any]:
    weight = weight.to(x.dtype)
    return lambda: torch.nn.functional.linear(x, weight)


def _int8_peer(torch: Any, t: list[Any]) -> Callable[[], Any]:
    x, weight, scale = t
    scale = scale.flatten().to(x.dtype)
    return lambda: torch._weight_int8pack_mm(x, weight, scale)


def _int4_peer(torch: Any, t: list[Any]) -> Callable[[], Any]:
    """(q - zero) scale is (q - 8) scale + (8 - zero) scale in PyTorch's words."""
    x, data, scale, zero = t
    q = torch.stack([data & 15, data >> 4], -1).flatten(1)
    parts = torch.stack([scale, (8 - zero) * scale], -1).transpose(0, 1).contiguous().to(x.dtype)
    if x.device.type == "cpu":
        packed = torch._convert_weight_to_int4pack_for_cpu(q.int(), 2)
        return lambda: torch._weight_int4pack_mm_for_cpu(x, packed, GROUP, parts)
    packed = torch._convert_weight_to_int4pack(q[:, ::2] << 4 | q[:, 1::2], 8)
    return lambda: torch._weight_int4pack_mm(x, packed, GROUP, parts)


def _nf4_peer(torch: Any, t: list[Any]) -> Callable[[], Any]:
    x, data, scale = t
    q = torch.stack([data >> 4, data & 15], -1).flatten().long()
    codes = torch.tensor(NF4, device=x.device)[q].view(-1, GROUP)
    return _linear(torch, x, (codes * scale[:, None]).view(-1, x.shape[1]))


def product(kind: str, m: int, n: int, k: int, dtype: str, as_bytes: bool = False) -> Row:
    x, scale, zero = Tensor((m, k), dtype), Tensor((n, k // GROUP), draw="positive"), None
    data, group, peer = Tensor((n, k // 2), "uint8", "index 256"), GROUP, _int4_peer
    if kind == "int8":
        data, scale = Tensor((n, k), "int8", "index 128"), Tensor((n, 1), draw="positive")
        group, peer = 0, _int8_peer
    elif kind == "int4":
        zero = Tensor((n, k // GROUP), "int8", "index 16")
    else:
        scale, peer = Tensor((n * k // GROUP,), draw="positive"), _nf4_peer
    return Row(
        "quantised",
        f"{m}x{n}x{k} {dtype}{' as int8' if as_bytes else ''} x {kind}",
        "_ocl_quantised_mm.out",
        [x, data, scale, zero, None, kind, n, group],
        [Tensor((m, n), dtype)],
        flops=2.0 * m * n * k,
        bytes=float(data.bytes + scale.bytes + x.bytes + 2 * m * n),
        peer=peer,
        tolerance=0.05 if as_bytes else -1.0,  # half a step of 127 for each element of x
        settings={"OCLTENSOR_ALLOW_INT8_ACTIVATIONS": "1"} if as_bytes else {},
        group=f"quantised {kind} {'few' if m <= 8 else 'many'} rows",
    )


def gguf(kind: str, m: int, n: int, k: int, dtype: str) -> Row:
    """Of blocks that hold numbers of 16 bits: bytes below 60 are finite ones, 1 at most."""
    block = BLOCKS[kind]
    x = Tensor((m, k), dtype)
    data = Tensor((n, k // block.elements * block.bytes), "uint8", "index 60")

    def peer(torch: Any, t: list[Any]) -> Callable[[], Any]:
        weight = torch.from_numpy(values(kind, t[1].cpu().numpy(), n, k))
        return _linear(torch, t[0], weight.to(t[0].device))

    return Row(
        "quantised",
        f"{m}x{n}x{k} {dtype} x {kind}",
        "_ocl_quantised_mm.out",
        [x, data, None, None, None, kind, n, 0],
        [Tensor((m, n), dtype)],
        flops=2.0 * m * n * k,
        bytes=float(data.bytes + x.bytes + 2 * m * n),
        peer=peer,
        group=f"quantised {kind} {'few' if m <= 8 else 'many'} rows",
    )


def rows(scale: Scale) -> list[Row]:
    dtype = "bfloat16"
    sizes = scale.pick(((4096, 4096),), ((4096, 4096), (14336, 4096), (4096, 14336)))
    found = [
        product(kind, m, n, k, dtype)
        for kind in ("int8", "int4", "nf4")
        for m in (1, 8, 512)
        for n, k in sizes
    ]
    found += [
        product(kind, 1, n, k, dtype, as_bytes=True) for kind in ("int8", "int4") for n, k in sizes
    ]
    return found + [gguf(kind, m, *sizes[0], dtype) for kind in BLOCKS for m in (1, 8)]
