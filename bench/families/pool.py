"""Pooling and resampling, forward and backward."""

from __future__ import annotations

from rows import Result, Row, Scale, Tensor


def rows(scale: Scale) -> list[Row]:
    b = scale.pick(4, 32)
    x, y = Tensor((b, 64, 112, 112)), Tensor((b, 64, 56, 56))
    label = f"{b}x64x112x112"
    moved = float(x.bytes + y.bytes)
    window = [[3, 3], [2, 2], [1, 1], [1, 1], False]
    top = Row(
        "pool",
        f"max_pool 3x3 s2 {label}",
        "max_pool2d_with_indices.out",
        [x, *window],
        [y, Tensor(y.shape, "int64")],
        flops=9 * y.count,
        bytes=moved + 2 * y.bytes,
        group="pool",
        check=(0, 1),
        tolerance=0.0,
    )
    average = [[2, 2], [2, 2], [0, 0], False, True, None]
    small = Tensor((b, 512, 7, 7))
    up = Tensor((b, 64, 28, 28))
    return [
        top,
        Row(
            "pool",
            f"max_pool backward 3x3 s2 {label}",
            "max_pool2d_with_indices_backward.grad_input",
            [Tensor(y.shape), x, *window, Result(1)],
            [Tensor(x.shape)],
            before=top,
            flops=y.count,
            bytes=moved + 2 * y.bytes,
            group="pool",
        ),
        Row(
            "pool",
            f"avg_pool 2x2 {label}",
            "avg_pool2d.out",
            [x, *average],
            [y],
            flops=4 * y.count,
            group="pool",
        ),
        Row(
            "pool",
            f"avg_pool backward 2x2 {label}",
            "avg_pool2d_backward.grad_input",
            [Tensor(y.shape), x, *average],
            [Tensor(x.shape)],
            flops=4 * y.count,
            bytes=moved,
            group="pool",
        ),
        Row(
            "pool",
            f"adaptive_avg_pool {b}x512x7x7 to 1x1",
            "_adaptive_avg_pool2d.out",
            [small, [1, 1]],
            [Tensor((b, 512, 1, 1))],
            flops=small.count,
            group="pool",
        ),
        Row(
            "pool",
            f"nearest {b}x64x28x28 to 56x56",
            "upsample_nearest2d.out",
            [up, [56, 56], None, None],
            [y],
            flops=y.count,
            group="pool",
        ),
        Row(
            "pool",
            f"bilinear {b}x64x28x28 to 56x56",
            "upsample_bilinear2d.out",
            [up, [56, 56], False, None, None],
            [y],
            flops=8 * y.count,
            group="pool",
        ),
    ]
