"""Lookups, gathers, scattered sums, concatenation, sorting."""

from __future__ import annotations

from rows import Row, Scale, Tensor

SPREADS = ("", " few 32", " few 2", " sorted", " zipf")


def spread_rows() -> list[Row]:
    """Sums over keys of which many, or few, are equal: the longest time is to be at most three
    times the shortest."""
    found = []
    for spread in SPREADS:
        label = spread.strip() or "uniform"

        def row(
            name: str, op: str, args: list, out: Tensor, moved: float, label: str = label
        ) -> None:
            found.append(
                Row(
                    "indexing",
                    f"{name}, {label}",
                    op,
                    args,
                    [out],
                    bytes=moved,
                    tolerance=1e-4,
                    group="key spreads",
                )
            )

        many, few = 1 << 20, 1 << 18
        ids = Tensor((few,), "int64", f"index 8192{spread}")
        gradient, table, lines = Tensor((few, 32)), Tensor((8192, 32)), Tensor((few, 8))
        narrow, places = Tensor((8192, 8)), Tensor((many,), "int64", f"index 65536{spread}")
        values, line = Tensor((many,)), Tensor((65536,))
        moved = float(gradient.bytes + table.bytes)
        row(
            "embedding backward 256Ki of 8192x32",
            "embedding_dense_backward.out",
            [gradient, ids, 8192, -1, False],
            table,
            moved,
        )
        moved = float(lines.bytes + 2 * narrow.bytes)
        row(
            "index_add 256Ki into 8192x8",
            "index_add.out",
            [narrow, 0, ids, lines, 1],
            narrow,
            moved,
        )
        moved = float(values.bytes + places.bytes + 2 * line.bytes)
        row(
            "index_put added 1Mi into 64Ki",
            "index_put.out",
            [line, [places], values, True],
            line,
            moved,
        )
        args = [line, 0, places, values, "amax", True]
        row("scatter_reduce amax 1Mi into 64Ki", "scatter_reduce.two_out", args, line, moved)
    return found


def rows(scale: Scale) -> list[Row]:
    words, width, tokens = 50257, 768, scale.pick(4096, 16384)
    table = Tensor((words, width))
    ids = Tensor((tokens,), "int64", f"index {words}")
    moved = 2.0 * tokens * width * 4
    long = scale.pick(4, 16) << 20
    parts = [Tensor((4, 64, 56, 56)) for _ in range(4)]
    flat = Tensor((long,))
    index = Tensor((long,), "int64", f"index {long}")
    rows_of = Tensor((tokens,), "int64", "index 8192")
    target, source = Tensor((8192, 256)), Tensor((tokens, 256))
    vector, wide = Tensor((1 << 20,)), Tensor((1024, 4096))
    common = {"group": "indexing", "tolerance": 0.0}
    return [
        *spread_rows(),
        Row(
            "indexing",
            f"embedding {tokens} of {words}x{width}",
            "embedding.out",
            [table, ids, -1, False, False],
            [Tensor((tokens, width))],
            bytes=moved,
            **common,
        ),
        Row(
            "indexing",
            f"embedding backward {tokens} of {words}x{width}",
            "embedding_dense_backward.out",
            [Tensor((tokens, width)), ids, words, -1, False],
            [Tensor((words, width))],
            bytes=moved / 2 + table.bytes,
            group="indexing",
            tolerance=1e-5,
        ),
        Row(
            "indexing",
            f"gather {long >> 20}Mi",
            "gather.out",
            [flat, 0, index, False],
            [Tensor((long,))],
            **common,
        ),
        Row(
            "indexing",
            f"index_select {tokens} of 8192x256",
            "index_select.out",
            [target, 0, rows_of],
            [Tensor((tokens, 256))],
            bytes=2.0 * source.bytes,
            **common,
        ),
        Row(
            "indexing",
            f"index_add {tokens} into 8192x256",
            "index_add.out",
            [target, 0, rows_of, source, 1],
            [Tensor((8192, 256))],
            bytes=2.0 * target.bytes + source.bytes,
            group="indexing",
            tolerance=1e-5,
        ),
        Row(
            "indexing",
            "cat 4 of 4x64x56x56, dim 1",
            "cat.out",
            [parts, 1],
            [Tensor((4, 256, 56, 56))],
            **common,
        ),
        *(
            Row(
                "indexing",
                f"sort {size}",
                "sort.values_stable",
                [x, True, dim, False],
                [Tensor(x.shape), Tensor(x.shape, "int64")],
                check=(0, 1),
                **common,
            )
            for size, x, dim in (("1Mi", vector, 0), ("1024x4096 rows", wide, 1))
        ),
        Row(
            "indexing",
            "topk 50 of 1024x4096",
            "topk.values",
            [wide, 50, 1, True, True],
            [Tensor((1024, 50)), Tensor((1024, 50), "int64")],
            **common,
        ),
    ]
