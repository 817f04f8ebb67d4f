"""Reductions to one value, along rows and along columns; scans."""

from __future__ import annotations

from typing import Any

from rows import Row, Scale, Tensor

MI = 1 << 20


def total(n: int, dtype: str = "float32", **more: Any) -> Row:
    x = Tensor((n,), dtype)
    return Row(
        more.pop("family", "reduce"),
        more.pop("name", f"sum {n // MI}Mi {dtype}"),
        "sum.IntList_out",
        [x, None, False, None],
        [Tensor((), dtype)],
        flops=n,
        tolerance=3e-2 if dtype != "float32" else 1e-3,
        **more,
    )


def along(op: str, label: str, r: int, c: int, dim: int, tolerance: float = 1e-4) -> Row:
    x = Tensor((r, c))
    tail = {
        "sum": [[dim], False, None],
        "amax": [[dim], False],
        "argmax": [dim, False],
        "var": [[dim], 1, False],
    }[label.split()[0]]
    out = Tensor(((r, c)[1 - dim],), "int64" if label.startswith("argmax") else "float32")
    return Row(
        "reduce",
        f"{label} {r}x{c} {'columns' if dim == 0 else 'rows'}",
        op,
        [x, *tail],
        [out],
        flops=r * c,
        tolerance=0.0 if out.dtype == "int64" else tolerance,
        group="reduce",
    )


def rows(scale: Scale) -> list[Row]:
    result = [total(16 * MI, group="reduce"), total(64 * MI, group="reduce large")]
    for r, c in ((4096, 1024), (1000, 4099), *scale.pick([], [(4096, 4096), (16384, 4096)])):
        result += [along("sum.IntList_out", "sum", r, c, dim) for dim in (1, 0)]
    result += [
        along("argmax.out", "argmax", 4096, 1024, 1),
        along("amax.out", "amax", 4096, 1024, 0),
        along("var.correction_out", "var", 4096, 1024, 1),
    ]
    x = Tensor((1024, 4096))
    result.append(
        Row(
            "reduce",
            "cumsum 1024x4096",
            "cumsum.out",
            [x, 1, None],
            [Tensor((1024, 4096))],
            flops=x.count,
            tolerance=1e-4,
        )
    )
    return result
