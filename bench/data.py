"""The rows' data, the same in every process, and what of the results is sent around to be
compared."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from rows import Tensor

BLOCK = (
    1 << 23
) - 15  # longer tensors repeat a block; its length is odd, so that rows of matrices differ
SAMPLES = 16384


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounded to nearest even, as uint16."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32)


def keys(rng: np.random.Generator, words: list[str], n: int) -> np.ndarray:
    """`n` whole numbers below words[0], spread as the words behind it say (rows.Tensor)."""
    limit, spread = int(words[0]), words[1] if len(words) > 1 else "uniform"
    if spread == "few":  # so many different ones, all over the range
        return rng.permutation(limit)[rng.integers(0, int(words[2]), n)]
    if spread == "zipf":  # the k-th most frequent one is 1 / k as frequent as the first
        shares = np.cumsum(1 / np.arange(1, limit + 1))
        ranks = np.searchsorted(shares, rng.random(n) * shares[-1])
        return rng.permutation(limit)[np.minimum(ranks, limit - 1)]
    drawn = rng.integers(0, limit, n, dtype=np.int64)
    return np.sort(drawn) if spread == "sorted" else drawn


def definite(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Symmetric matrices with eigenvalues between 1 and about 5."""
    half = rng.standard_normal(shape, dtype=np.float32)
    return half @ half.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1], dtype=np.float32)


def draw(row: str, index: int, t: Tensor) -> np.ndarray:
    """Input `index` of a row, as the operator sees it; bfloat16 as uint16."""
    rng = np.random.default_rng(zlib.crc32(f"{row}/{index}".encode()))
    n = min(t.count, BLOCK)
    if t.draw.startswith("index"):
        values = keys(rng, t.draw.split()[1:], n).astype(t.dtype)
    elif t.draw.startswith("offsets"):
        limit = int(t.draw.split()[1])
        inner = np.sort(rng.integers(0, limit + 1, t.count - 2))
        values = np.concatenate(([0], inner, [limit])).astype(t.dtype)
    elif t.draw == "definite":
        values = definite(rng, t.shape).astype(t.dtype)
    elif t.draw == "bool":
        values = rng.integers(0, 2, n).astype(bool)
    else:
        values = rng.standard_normal(n, dtype=np.float32)
        if t.draw == "positive":
            values = np.abs(values) + np.float32(0.5)
        values = to_bfloat16(values) if t.dtype == "bfloat16" else values.astype(t.dtype)
    return np.resize(values, t.count).reshape(t.shape)


def positions(count: int) -> np.ndarray:
    """Which elements of a result are compared: all of a small one, with the first and last of a
    large one."""
    if count <= SAMPLES:
        return np.arange(count)
    chosen = np.random.default_rng(count).integers(0, count, SAMPLES)
    chosen[:2] = 0, count - 1
    return chosen


def digest(values: np.ndarray, nans: int) -> dict[str, Any]:
    """Of the elements at `positions`, and how many NaN the whole result has."""
    return {"nans": nans, "values": base64.b64encode(values.astype(np.float64).tobytes()).decode()}


def difference(ours: list[dict], theirs: list[dict]) -> float:
    """The largest difference relative to the largest value of its result; infinite where NaN or
    sizes differ."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        x, y = (np.frombuffer(base64.b64decode(d["values"])) for d in (a, b))
        if x.shape != y.shape or a["nans"] != b["nans"]:
            return float("inf")
        if x.size:
            finite = np.abs(y[np.isfinite(y)])
            scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
            with np.errstate(invalid="ignore"):
                apart = np.where(x == y, 0.0, np.abs(x - y))
            worst = max(worst, float(np.nan_to_num(apart, nan=np.inf).max()) / scale)
    return worst
