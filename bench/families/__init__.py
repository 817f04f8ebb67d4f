"""The bench's rows: FAMILIES maps a family's name to the function that gives its rows for a
scale."""

from __future__ import annotations

from rows import Row, Scale

from . import (
    attention,
    conv,
    growth,
    indexing,
    launch,
    linalg,
    matmul,
    norm,
    pointwise,
    pool,
    quantised,
    reduce,
    torch_level,
)

FAMILIES = {
    "pointwise": pointwise.rows,
    "reduce": reduce.rows,
    "matmul": matmul.rows,
    "quantised": quantised.rows,
    "conv": conv.rows,
    "rows": norm.rows,
    "pool": pool.rows,
    "attention": attention.rows,
    "masks": attention.masked,
    "indexing": indexing.rows,
    "linalg": linalg.rows,
    "torch": torch_level.small,
    "launch": launch.rows,
    "models": torch_level.models,
    "networks": torch_level.networks,
    "growth": growth.rows,
}
EXTRA = ("networks", "growth")  # only when named


def all_rows(scale: Scale, families: list[str] | None = None) -> list[Row]:
    return [row for name in families or FAMILIES for row in FAMILIES[name](scale)]
