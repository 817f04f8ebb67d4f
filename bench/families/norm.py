"""Softmax and normalisations along rows and channels, forward and backward."""

from __future__ import annotations

from rows import Dtype, Result, Row, Scale, Tensor


def softmax(r: int, n: int, dtype: str = "float32", log: bool = False) -> list[Row]:
    x, y = Tensor((r, n), dtype), Tensor((r, n), dtype)
    label, op = ("log_softmax", "_log_softmax") if log else ("softmax", "_softmax")
    forward = Row(
        "rows",
        f"{label} {r}x{n} {dtype}",
        f"{op}.out",
        [x, 1, False],
        [y],
        flops=5 * x.count,
        group="rows",
    )
    backward = Row(
        "rows",
        f"{label} backward {r}x{n} {dtype}",
        f"{op}_backward_data.out",
        [Tensor((r, n), dtype), Result(0), 1, Dtype(dtype)],
        [Tensor((r, n), dtype)],
        before=forward,
        flops=4 * x.count,
        bytes=3.0 * x.bytes,
        group="rows",
        tolerance=1e-4 if dtype == "float32" else -1.0,
    )
    return [forward, backward]


def _backward(forward: Row, name: str, op: str, args: list, outs: list[Tensor]) -> Row:
    """The three gradients of a normalisation."""
    x = forward.args[0]
    return Row(
        "rows",
        name,
        op,
        args,
        outs,
        before=forward,
        check=(0, 1, 2),
        flops=14 * x.count,
        bytes=3.0 * x.bytes,
        group="rows",
        tolerance=1e-4 if x.dtype == "float32" else -1.0,
    )


def layer(r: int, n: int, dtype: str = "float32") -> list[Row]:
    x, g, b = Tensor((r, n), dtype), Tensor((n,), dtype), Tensor((n,), dtype)
    moments = [Tensor((r, 1)), Tensor((r, 1))]
    forward = Row(
        "rows",
        f"layer norm {r}x{n} {dtype}",
        "native_layer_norm.out",
        [x, [n], g, b, 1e-5],
        [Tensor((r, n), dtype), *moments],
        flops=8 * x.count,
        group="rows",
        bytes=2.0 * x.bytes,
    )
    backward = _backward(
        forward,
        f"layer norm backward {r}x{n} {dtype}",
        "native_layer_norm_backward.out",
        [Tensor((r, n), dtype), x, [n], Result(1), Result(2), g, b, [True] * 3],
        [Tensor((r, n), dtype), Tensor((n,), dtype), Tensor((n,), dtype)],
    )
    return [forward, backward]


def batch(shape: tuple[int, ...], training: bool) -> list[Row]:
    c = shape[1]
    x, g, b = Tensor(shape), Tensor((c,)), Tensor((c,))
    mean, variance = Tensor((c,)), Tensor((c,), draw="positive")
    saved = [Tensor((c if training else 0,)), Tensor((c if training else 0,))]
    label = "x".join(map(str, shape)) + (" train" if training else " eval")
    forward = Row(
        "rows",
        f"batch norm {label}",
        "native_batch_norm.out",
        [x, g, b, mean, variance, training, 0.1, 1e-5],
        [Tensor(shape), *saved],
        flops=(8 if training else 2) * x.count,
        bytes=2.0 * x.bytes,
        group="rows",
        tolerance=1e-4,
    )
    if not training:
        return [forward]
    backward = _backward(
        forward,
        f"batch norm backward {label}",
        "native_batch_norm_backward.out",
        [Tensor(shape), x, g, mean, variance, Result(1), Result(2), True, 1e-5, [True] * 3],
        [Tensor(shape), Tensor((c,)), Tensor((c,))],
    )
    return [forward, backward]


def group(n: int, c: int, size: int, groups: int) -> list[Row]:
    x, g, b = Tensor((n, c, size, size)), Tensor((c,)), Tensor((c,))
    area = size * size
    label = f"{n}x{c}x{size}x{size}, {groups} groups"
    forward = Row(
        "rows",
        f"group norm {label}",
        "native_group_norm.out",
        [x, g, b, n, c, area, groups, 1e-5],
        [Tensor(x.shape), Tensor((n, groups)), Tensor((n, groups))],
        flops=8 * x.count,
        bytes=2.0 * x.bytes,
        group="rows",
        tolerance=1e-4,
    )
    backward = _backward(
        forward,
        f"group norm backward {label}",
        "native_group_norm_backward.out",
        [Tensor(x.shape), x, Result(1), Result(2), g, n, c, area, groups, [True] * 3],
        [Tensor(x.shape), Tensor((c,)), Tensor((c,))],
    )
    return [forward, backward]


def rows(scale: Scale) -> list[Row]:
    result = [r for shape in ((4096, 1024), (128, 50257)) for r in softmax(*shape)]
    result += softmax(4096, 128)[:1] + softmax(512, 50257, log=True)
    result += scale.pick([], softmax(4096, 4096) + softmax(4096, 4096, "float16"))
    result += layer(4096, 768) + layer(1024, 4099)[:1]
    result += scale.pick([], layer(16384, 4096) + layer(16384, 4096, "float16"))
    b = scale.pick(4, 32)
    result += [r for training in (False, True) for r in batch((b, 64, 56, 56), training)]
    return result + batch((b, 512, 7, 7), True) + group(b, 128, 32, 32)
