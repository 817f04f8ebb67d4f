"""The bench's rows: for each operator the shapes, arguments, peer and costs. One function a family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F


@dataclass
class Case:
    """One row. `inputs` and `outputs` are torch CPU tensors; the plugin gets copies of the inputs, and argument `Input(i)`
    stands for one of them. `peer` computes the same with PyTorch on the CPU; results are compared with it."""

    family: str
    name: str
    op: str
    inputs: list[torch.Tensor]
    args: list
    outputs: list[tuple[tuple[int, ...], str]]
    peer: Callable[[], torch.Tensor]
    flops: float = 0.0
    bytes: float = 0.0
    tolerance: float = 1e-5  # relative to the largest value of the result


@dataclass
class Input:
    index: int
    transposed: bool = False


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def pointwise() -> list[Case]:
    n = 16 << 20
    x, y = _random(n), _random(n)
    out = torch.empty(n)
    rows = [
        Case("pointwise", "copy 16Mi", "copy.out", [x, x], [Input(0), Input(1), False], [((n,), "float32")],
             lambda: out.copy_(x), bytes=8.0 * n),
        Case("pointwise", "add 16Mi", "add.out", [x, y], [Input(0), Input(1), 1], [((n,), "float32")],
             lambda: torch.add(x, y, out=out), bytes=12.0 * n),
    ]
    m = 4 << 20
    a, small = _random(m), torch.empty(m)
    for name in ("exp", "tanh", "relu", "sigmoid", "gelu", "sqrt"):
        f = getattr(torch, name, None) or getattr(F, name)
        args = [Input(0), "none"] if name == "gelu" else [Input(0)]
        source = a.abs() if name == "sqrt" else a
        peer = (lambda f=f, s=source: f(s, out=small)) if name not in ("relu", "gelu") else (lambda f=f, s=source: f(s))
        rows.append(Case("pointwise", f"{name} 4Mi", f"{name}.out", [source], args, [((m,), "float32")], peer,
                         bytes=8.0 * m))
    for size in (1024, 2048):
        t, to = _random(size, size), torch.empty(size, size)
        rows.append(Case("pointwise", f"transpose {size}", "copy.out", [t, t], [Input(0), Input(1, True), False],
                         [((size, size), "float32")], lambda t=t, to=to: to.copy_(t.t()), bytes=8.0 * size * size))
    big = 64 << 20  # 256 MB: beyond the caches of any device
    u, v = _random(big), _random(big)
    rows.append(Case("pointwise", "add 64Mi", "add.out", [u, v], [Input(0), Input(1), 1], [((big,), "float32")],
                     lambda: torch.add(u, v), bytes=12.0 * big))
    rows.append(Case("pointwise", "copy 64Mi", "copy.out", [u, u], [Input(0), Input(1), False], [((big,), "float32")],
                     lambda: u.clone(), bytes=8.0 * big))
    return rows


def reduce() -> list[Case]:
    n = 16 << 20
    x = _random(n)
    rows = [Case("reduce", "sum 16Mi", "sum.IntList_out", [x], [Input(0), None, False, None], [((), "float32")],
                 lambda: torch.sum(x), bytes=4.0 * n, tolerance=1e-4)]
    for shape in ((4096, 1024), (1000, 4099)):
        t = _random(*shape)
        for dim, label in ((1, "rows"), (0, "columns")):
            rows.append(Case("reduce", f"sum {shape[0]}x{shape[1]} {label}", "sum.IntList_out", [t],
                             [Input(0), [dim], False, None], [((shape[1 - dim],), "float32")],
                             lambda t=t, d=dim: torch.sum(t, d), bytes=4.0 * t.numel()))
    big = _random(64 << 20)
    rows.append(Case("reduce", "sum 64Mi", "sum.IntList_out", [big], [Input(0), None, False, None], [((), "float32")],
                     lambda: torch.sum(big), bytes=4.0 * big.numel(), tolerance=1e-4))
    t = _random(4096, 1024)
    rows.append(Case("reduce", "argmax 4096x1024", "argmax.out", [t], [Input(0), 1, False], [((4096,), "int64")],
                     lambda: torch.argmax(t, 1), bytes=4.0 * t.numel()))
    return rows


def matmul() -> list[Case]:
    rows = []
    shapes = [(n, n, n, "nn") for n in (64, 128, 256, 512, 1024, 2048, 4096)]
    shapes += [(512, 512, 512, "nt"), (512, 512, 512, "tn"), (1000, 777, 333, "nn")]
    shapes += [(m, 2048, 2048, t) for m in (1, 4, 32) for t in ("nn", "nt")]
    for m, n, k, layout in shapes:
        a = _random(k, m) if layout == "tn" else _random(m, k)
        b = _random(n, k) if layout == "nt" else _random(k, n)
        ta, tb = (a.t() if layout == "tn" else a), (b.t() if layout == "nt" else b)
        out = torch.empty(m, n)
        rows.append(Case("matmul", f"{m}x{n}x{k} {layout}", "mm.out", [a, b],
                         [Input(0, layout == "tn"), Input(1, layout == "nt")], [((m, n), "float32")],
                         lambda ta=ta, tb=tb, out=out: torch.mm(ta, tb, out=out), flops=2.0 * m * n * k))
    a, b = _random(32, 96, 64), _random(32, 64, 128)
    rows.append(Case("matmul", "bmm 32x96x128x64", "bmm.out", [a, b], [Input(0), Input(1)], [((32, 96, 128), "float32")],
                     lambda: torch.bmm(a, b), flops=2.0 * 32 * 96 * 128 * 64))
    return rows


# ResNet-18's convolutions at 224x224: channels in, size, channels out, kernel, stride, how many of them.
RESNET18 = [(3, 224, 64, 7, 2, 1), (64, 56, 64, 3, 1, 4), (64, 56, 128, 3, 2, 1), (64, 56, 128, 1, 2, 1),
            (128, 28, 128, 3, 1, 3), (128, 28, 256, 3, 2, 1), (128, 28, 256, 1, 2, 1), (256, 14, 256, 3, 1, 3),
            (256, 14, 512, 3, 2, 1), (256, 14, 512, 1, 2, 1), (512, 7, 512, 3, 1, 3)]


def conv(batch: int = 4) -> list[Case]:
    rows = []
    for cin, size, cout, kernel, stride, count in RESNET18:
        x, w, pad = _random(batch, cin, size, size), _random(cout, cin, kernel, kernel), kernel // 2
        osize = (size + 2 * pad - kernel) // stride + 1
        rows.append(Case("conv", f"{cin}x{size} -> {cout} {kernel}x{kernel} s{stride} (x{count})", "convolution.out",
                         [x, w], [Input(0), Input(1), None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1],
                         [((batch, cout, osize, osize), "float32")],
                         lambda x=x, w=w, s=stride, p=pad: F.conv2d(x, w, stride=s, padding=p),
                         flops=2.0 * batch * cout * osize * osize * cin * kernel * kernel, tolerance=1e-4))
    for channels, size, stride in ((32, 112, 1), (144, 56, 1), (384, 14, 1)):
        x, w = _random(batch, channels, size, size), _random(channels, 1, 3, 3)
        rows.append(Case("conv", f"depthwise 3x3 {channels}x{size}", "convolution.out", [x, w],
                         [Input(0), Input(1), None, [1, 1], [1, 1], [1, 1], False, [0, 0], channels],
                         [((batch, channels, size, size), "float32")],
                         lambda x=x, w=w, g=channels: F.conv2d(x, w, padding=1, groups=g),
                         flops=18.0 * batch * channels * size * size, tolerance=1e-4))
    return rows


def rows() -> list[Case]:
    result = []
    for r, n in ((4096, 1024), (128, 50257), (4096, 128)):
        t = _random(r, n)
        result.append(Case("rows", f"softmax {r}x{n}", "_softmax.out", [t], [Input(0), 1, False], [((r, n), "float32")],
                           lambda t=t: torch.softmax(t, 1), bytes=8.0 * r * n))
    for r, n in ((4096, 768), (1024, 4099)):
        t, g, b = _random(r, n), _random(n), _random(n)
        result.append(Case("rows", f"layer norm {r}x{n}", "native_layer_norm.out", [t, g, b],
                           [Input(0), [n], Input(1), Input(2), 1e-5],
                           [((r, n), "float32"), ((r, 1), "float32"), ((r, 1), "float32")],
                           lambda t=t, n=n, g=g, b=b: torch.native_layer_norm(t, (n,), g, b, 1e-5)[0],
                           bytes=8.0 * r * n))
    x = _random(4, 64, 56, 56)
    g, b, mean, var = _random(64), _random(64), _random(64), torch.rand(64) + 0.5
    for training in (False, True):
        stats = [((64,) if training else (0,), "float32")] * 2
        result.append(Case("rows", f"batch norm 4x64x56x56 {'train' if training else 'eval'}", "native_batch_norm.out",
                           [x, g, b, mean, var], [Input(0), Input(1), Input(2), Input(3), Input(4), training, 0.1, 1e-5],
                           [(tuple(x.shape), "float32"), *stats],
                           lambda tr=training: torch.native_batch_norm(x, g, b, mean.clone(), var.clone(), tr, 0.1,
                                                                       1e-5)[0], bytes=8.0 * x.numel()))
    p = _random(4, 64, 112, 112)
    result.append(Case("rows", "max_pool 3x3 s2 4x64x112x112", "max_pool2d_with_indices.out", [p],
                       [Input(0), [3, 3], [2, 2], [1, 1], [1, 1], False],
                       [((4, 64, 56, 56), "float32"), ((4, 64, 56, 56), "int64")],
                       lambda: F.max_pool2d(p, 3, 2, 1, return_indices=True)[0], bytes=4.0 * p.numel() * 1.25))
    result.append(Case("rows", "avg_pool 2x2 4x64x112x112", "avg_pool2d.out", [p],
                       [Input(0), [2, 2], [2, 2], [0, 0], False, True, None], [((4, 64, 56, 56), "float32")],
                       lambda: F.avg_pool2d(p, 2, 2), bytes=4.0 * p.numel() * 1.25))
    return result


FAMILIES: dict[str, Callable[[], list[Case]]] = {"pointwise": pointwise, "reduce": reduce, "matmul": matmul,
                                                 "conv": conv, "rows": rows}
