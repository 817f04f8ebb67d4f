"""Matrix products: types, layouts, batches, and those with few rows."""

from __future__ import annotations

from typing import Any

from rows import Row, Scale, Tensor


def product(
    m: int, n: int, k: int, dtype: str = "float32", layout: str = "nn", batch: int = 0, **more: Any
) -> Row:
    lead = (batch,) if batch else ()
    a = Tensor((*lead, m, k), dtype, transposed=layout[0] == "t")
    b = Tensor((*lead, k, n), dtype, transposed=layout[1] == "t")
    name = f"{'bmm ' + str(batch) + 'x' if batch else ''}{m}x{n}x{k} {layout} {dtype}"
    return Row(
        more.pop("family", "matmul"),
        more.pop("name", name),
        "bmm.out" if batch else "mm.out",
        [a, b],
        [Tensor((*lead, m, n), dtype)],
        flops=2.0 * max(batch, 1) * m * n * k,
        **more,
    )


def int8_product(m: int, n: int, k: int, **more: Any) -> Row:
    return Row(
        "matmul",
        f"{m}x{n}x{k} nt int8",
        "_int_mm.out",
        [Tensor((m, k), "int8", "index 128"), Tensor((k, n), "int8", "index 128", transposed=True)],
        [Tensor((m, n), "int32")],
        flops=2.0 * m * n * k,
        **more,
    )


def int8_weight(m: int, n: int, k: int, dtype: str, **more: Any) -> Row:
    """A weight [N, K] of int8, with a scale for each of the N results."""
    return Row(
        "matmul",
        f"{m}x{n}x{k} nt {dtype} x int8, scaled",
        "_ocl_scaled_mm.out",
        [
            Tensor((m, k), dtype),
            Tensor((k, n), "int8", "index 128", transposed=True),
            Tensor((n,), dtype),
        ],
        [Tensor((m, n), dtype)],
        flops=2.0 * m * n * k,
        **more,
    )


def rows(scale: Scale) -> list[Row]:
    squares = scale.pick((64, 128, 256, 512, 1024, 2048), (256, 512, 1024, 2048, 4096, 8192))
    result = [product(n, n, n, group="matmul float32" if n >= 256 else "") for n in squares]
    size = scale.pick(512, 4096)
    result += [
        product(size, size, size, layout=layout, group="matmul float32")
        for layout in ("nt", "tn", "tt")
    ]
    result += [product(1000, 777, 333, group="matmul float32")]
    if scale.gpu:
        # The peer keeps to float32. TF32 rounds factors to 11 binary digits: 2^-11 of a sum's
        # spread, 5 of which are the largest value.
        portable = {
            "name": "4096x4096x4096 nn float32, portable kernel",
            "settings": {"OCLTENSOR_PREFER_OPENCL": "1"},
        }
        high = {
            "name": '8192x8192x8192 nt float32, precision "high" (TF32)',
            "settings": {"OCLTENSOR_ALLOW_TF32": "1"},
        }
        result += [
            product(4096, 4096, 4096, **portable),
            product(8192, 8192, 8192, layout="nt", tolerance=1e-3, **high),
        ]
    result += [
        product(m, 2048, 2048, layout=layout, group="matmul skinny")
        for m in (1, 4, 32)
        for layout in ("nn", "nt")
    ]
    result += [
        product(96, 128, 64, batch=32),
        product(512, 64, 512, batch=24),
        product(512, 512, 64, layout="nt", batch=24),
    ]
    for dtype in ("float16", "bfloat16"):
        group = f"matmul {dtype}"
        cpu = (
            (512, 1024) if dtype == "bfloat16" else (512,)
        )  # torch's float16 takes seconds on a CPU
        result += [
            product(n, n, n, dtype, group=group) for n in scale.pick(cpu, (1024, 2048, 4096, 8192))
        ]
        result += [product(size, size, size, dtype, layout, group=group) for layout in ("nt", "tn")]
        result += [product(1, 4096, 4096, dtype, "nt", group=f"matmul skinny {dtype}")]
        result += [
            product(*scale.pick((128, 128, 64), (1024, 1024, 1024)), dtype, batch=16, group=group)
        ]
    # torch's CUDA takes int8 with a right factor along k alone
    result += [
        int8_product(n, n, n, group="matmul int8")
        for n in scale.pick((512, 1024), (1024, 2048, 4096))
    ]
    result += [int8_product(32, 4096, 4096, group="matmul int8")]
    result += [
        int8_weight(m, 4096, 4096, dtype, group="matmul int8 weight")
        for m in (1, 16, 512)
        for dtype in scale.pick(("float32",), ("float16", "bfloat16"))
    ]
    m, n, k = scale.pick((512, 3072, 768), (4096, 3072, 768))
    bias = Row(
        "matmul",
        f"addmm {m}x{n}x{k} + bias, nt",
        "addmm.out",
        [Tensor((n,)), Tensor((m, k)), Tensor((k, n), transposed=True), 1, 1],
        [Tensor((m, n))],
        flops=2.0 * m * n * k,
        group="matmul float32",
    )
    return [*result, bias]
