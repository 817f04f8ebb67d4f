"""Formats of quantised weights unpacked by numpy, in float64: the oracle of the kernels that do so.
Values follow from the bytes alone; nothing is shared with src/base/weight_formats.def but the
names."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
     -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
     0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1.0], dtype=np.float32,
).astype(np.float64)  # fmt: skip
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], dtype=np.float64) / 12
FP4 = np.concatenate([FP4, -FP4]).astype(np.float32).astype(np.float64)


def nibbles(data: np.ndarray, high_first: bool) -> np.ndarray:
    """Two numbers of each byte, along the last dimension."""
    pair = [data >> 4, data & 15] if high_first else [data & 15, data >> 4]
    return np.stack(pair, -1).reshape(*data.shape[:-1], 2 * data.shape[-1])


def e4m3(data: np.ndarray) -> np.ndarray:
    bits = np.arange(256)
    exponent, digits = bits >> 3 & 15, bits & 7
    table = np.where(exponent == 0, digits / 8 * 2.0**-6, (1 + digits / 8) * 2.0 ** (exponent - 7))
    table[bits & 127 == 127] = np.nan
    return np.where(bits & 128, -table, table)[data]


def e5m2(data: np.ndarray) -> np.ndarray:
    return (data.astype(np.uint16) << 8).view(np.float16).astype(np.float64)


def halves(data: np.ndarray) -> np.ndarray:
    """[..., 2] bytes as numbers [..., 1]."""
    return np.ascontiguousarray(data).view(np.float16).astype(np.float64)


def q8_0(block: np.ndarray) -> np.ndarray:
    return halves(block[:, :2]) * block[:, 2:].view(np.int8)


def q4_0(block: np.ndarray) -> np.ndarray:
    q = np.concatenate([block[:, 2:] & 15, block[:, 2:] >> 4], 1).astype(np.float64)
    return halves(block[:, :2]) * (q - 8)


def q4_1(block: np.ndarray) -> np.ndarray:
    q = np.concatenate([block[:, 4:] & 15, block[:, 4:] >> 4], 1)
    return halves(block[:, :2]) * q + halves(block[:, 2:4])


def five_bits(block: np.ndarray) -> np.ndarray:
    """Upper bits of 32 elements, then the others of the first half beside those of the second."""
    upper = np.unpackbits(block[:, :4], axis=1, bitorder="little")
    return np.concatenate([block[:, 4:] & 15, block[:, 4:] >> 4], 1) + 16.0 * upper


def q5_0(block: np.ndarray) -> np.ndarray:
    return halves(block[:, :2]) * (five_bits(block[:, 2:]) - 16)


def q5_1(block: np.ndarray) -> np.ndarray:
    return halves(block[:, :2]) * five_bits(block[:, 4:]) + halves(block[:, 2:4])


def two_bits(data: np.ndarray) -> np.ndarray:
    parts = data.reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6]).reshape(4, 1) & 3
    return parts.reshape(-1, 16, 16)


def q2_k(block: np.ndarray) -> np.ndarray:
    scale, least = halves(block[:, 80:82]) * (block[:, :16] & 15), block[:, :16] >> 4
    least = halves(block[:, 82:]) * least
    value = scale[..., None] * two_bits(block[:, 16:80]) - least[..., None]
    return value.reshape(len(block), 256)


def q3_k(block: np.ndarray) -> np.ndarray:
    s = block[:, 96:108].astype(np.int64)
    low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], 1)
    high = np.concatenate([s[:, 8:] >> shift & 3 for shift in (0, 2, 4, 6)], 1)
    third = (block[:, None, :32] >> np.arange(8)[:, None] & 1).reshape(-1, 16, 16)
    q = two_bits(block[:, 32:96]) + 4.0 * third - 4
    scale = halves(block[:, 108:]) * ((low | high << 4) - 32)
    return (q * scale[..., None]).reshape(len(block), 256)


def by_k_scales(block: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Elements q [blocks, 8, 32] with scales and minima of 6 bits."""
    s = block[:, 4:16].astype(np.int64)
    scale = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6 << 4)], 1)
    least = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6 << 4)], 1)
    least = halves(block[:, 2:4]) * least
    value = (halves(block[:, :2]) * scale)[..., None] * q - least[..., None]
    return value.reshape(len(block), 256)


def chunks_of_nibbles(data: np.ndarray) -> np.ndarray:
    chunks = data.reshape(-1, 4, 32)
    return np.stack([chunks & 15, chunks >> 4], 2).reshape(-1, 8, 32)


def q4_k(block: np.ndarray) -> np.ndarray:
    return by_k_scales(block, chunks_of_nibbles(block[:, 16:]))


def q5_k(block: np.ndarray) -> np.ndarray:
    fifth = block[:, None, 16:48] >> np.arange(8)[:, None] & 1
    return by_k_scales(block, chunks_of_nibbles(block[:, 48:]) + 16 * fifth)


def q6_k(block: np.ndarray) -> np.ndarray:
    low = block[:, :128].reshape(-1, 2, 2, 32)  # part, half of its bytes
    low = np.stack([low & 15, low >> 4], 2).reshape(-1, 2, 4, 32)
    top = block[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6]).reshape(4, 1) & 3
    q = (low | top << 4).reshape(-1, 16, 16).astype(np.int64) - 32
    scale = halves(block[:, 208:]) * block[:, 192:208].view(np.int8)
    return (q * scale[..., None]).reshape(len(block), 256)


IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113.0])


def iq4_nl(block: np.ndarray) -> np.ndarray:
    q = np.concatenate([block[:, 2:] & 15, block[:, 2:] >> 4], 1)
    return halves(block[:, :2]) * IQ4[q]


def iq4_xs(block: np.ndarray) -> np.ndarray:
    upper = np.ascontiguousarray(block[:, 2:4]).view(np.uint16) >> np.arange(0, 16, 2) & 3
    scale = (nibbles(block[:, 4:8], False) | upper << 4).astype(np.int64) - 32
    part = block[:, 8:].reshape(-1, 8, 16)
    q = np.concatenate([part & 15, part >> 4], 2)
    return ((halves(block[:, :2]) * scale)[..., None] * IQ4[q]).reshape(len(block), 256)


class Block(NamedTuple):
    """Of a GGUF format: what unpacks it, elements, bytes, and where its 16-bit numbers are."""

    unpack: Callable[[np.ndarray], np.ndarray] | None
    elements: int
    bytes: int
    halves: tuple[int, ...]


BLOCKS = {
    "q8_0": Block(q8_0, 32, 34, (0,)),
    "q4_0": Block(q4_0, 32, 18, (0,)),
    "q4_1": Block(q4_1, 32, 20, (0, 2)),
    "q5_0": Block(q5_0, 32, 22, (0,)),
    "q5_1": Block(q5_1, 32, 24, (0, 2)),
    "q2_k": Block(q2_k, 256, 84, (80, 82)),
    "q3_k": Block(q3_k, 256, 110, (108,)),
    "q4_k": Block(q4_k, 256, 144, (0, 2)),
    "q5_k": Block(q5_k, 256, 176, (0, 2)),
    "q6_k": Block(q6_k, 256, 210, (208,)),
    "iq4_nl": Block(iq4_nl, 32, 18, (0,)),
    "iq4_xs": Block(iq4_xs, 256, 136, (0,)),
}


def along(part: np.ndarray, n: int, k: int) -> np.ndarray:
    """A scale or zero for each element, of one for each group of each row, or of all rows."""
    part = np.asarray(part, dtype=np.float64)
    return np.broadcast_to(np.repeat(part, max(k, 1) // part.shape[1], 1)[:, :k], (n, k))


def values(
    kind: str,
    data: np.ndarray,
    n: int,
    k: int,
    group: int = 0,
    scale: np.ndarray | None = None,
    zero: np.ndarray | None = None,
) -> np.ndarray:
    """The weight [n, k]. ``data`` has the shape in which it is kept, of bytes (tiles: of int32)."""
    if kind in BLOCKS:
        block = BLOCKS[kind]
        with np.errstate(all="ignore"):
            return block.unpack(data.reshape(-1, block.bytes)).reshape(n, k)
    scale = np.asarray(scale, dtype=np.float64)
    with np.errstate(all="ignore"):
        if kind in ("nf4", "fp4"):
            codes = (NF4 if kind == "nf4" else FP4)[nibbles(data.reshape(-1), True)[: n * k]]
            return (codes * np.repeat(scale, group)[: n * k]).reshape(n, k)
        if kind == "codes":
            codes = np.asarray(zero, np.float64)[nibbles(data.reshape(-1), True)[: n * k]]
            return (codes * np.repeat(scale, group)[: n * k]).reshape(n, k)
        if kind == "int8_zeros":
            q = data.reshape(n, k).view(np.int8).astype(np.float64)
            return (q - along(zero, n, k)) * along(scale, n, k)
        if kind == "int4_signed":
            q = nibbles(data.reshape(n, k // 2), False).astype(np.float64)
            return np.where(q < 8, q, q - 16) * along(scale, n, k) + along(zero, n, k)
        if kind == "int8":
            return data.reshape(n, k).view(np.int8) * along(scale, n, k)
        if kind == "e4m3":
            return e4m3(data.reshape(n, k)) * along(scale, n, k)
        if kind == "e5m2":
            return e5m2(data.reshape(n, k)) * along(scale, n, k)
        if kind == "int4":
            q = nibbles(data.reshape(n, k // 2), False).astype(np.float64)
            return (q - along(zero, n, k)) * along(scale, n, k)
        assert kind == "int4_tiles", kind
        rows, steps, _, words = data.shape
        tile = np.ascontiguousarray(data).view(np.uint8).reshape(rows, steps, 8, words, 16)
        q = np.concatenate([tile & 15, tile >> 4], -1).transpose(0, 2, 1, 3, 4).reshape(n, k)
        return (q.astype(np.float64) - 8) * along(scale, n, k) + along(zero, n, k)
