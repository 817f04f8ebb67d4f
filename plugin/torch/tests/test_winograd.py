"""Winograd's tiles of convolutions: values against float64 and against tiles without transforms in
all directions, numbers that are not finite, and when they are chosen. The kernels of GPUs are made
to take every size: whether they do by rule depends on the device."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Callable, Iterator

import gpu_style
import torch
import torch_ocl  # noqa: F401  registers the device
from torch import Tensor

F = torch.nn.functional
aten = torch.ops.aten
ocl = torch.backends.ocl
LAST = torch.channels_last
DISABLED = "OCLTENSOR_DISABLED_ALGORITHMS"
GPU_STYLE = gpu_style.IS_GPU_STYLE or torch.ocl.get_device_properties().kind != "cpu"
WINOGRAD = "conv.winograd_gpu" if GPU_STYLE else "conv.winograd"
# What is not asked, so that Winograd's tiles are.
NOT_WINOGRAD = "conv.implicit*,conv.columns,conv.general" if GPU_STYLE else ""

# Batch, input channels, rows, columns, output channels, padding: maps that are no multiple of a
# tile, blocks of tiles that are half used, more than one pass over the tiles (the last one).
SHAPES = [
    (1, 8, 66, 61, 33, 1),
    (2, 17, 30, 37, 40, 2),
    (3, 33, 21, 23, 16, 0),
    (4, 64, 14, 14, 64, 1),
    (1, 16, 32, 64, 70, 0),
    (2, 24, 7, 130, 32, (2, 0)),
    (8, 8, 64, 64, 9, 1),
]
if GPU_STYLE:  # nothing there depends on blocks of tiles
    SHAPES = SHAPES[1:4:2]
# Rounding grows with the transforms' numbers: the root mean square of the error is 2 to 3 times
# that of the direct tiles, 4 times for numbers of a wide range. With the points 1 and 2 it would be
# 10 times.
WORSE = 5.0


def random(*shape: int, seed: int, kind: str = "normal") -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    if kind == "offset":
        return x + 100
    if kind == "wide":
        return x * torch.exp(3 * torch.randn(shape, generator=generator))
    return x


def pair(padding: int | tuple[int, int]) -> list[int]:
    return [padding] * 2 if isinstance(padding, int) else list(padding)


def forward(x: Tensor, w: Tensor, b: Tensor | None, padding: list[int]) -> Tensor:
    return F.conv2d(x, w, b, padding=padding)


def transposed(x: Tensor, w: Tensor, b: Tensor | None, padding: list[int]) -> Tensor:
    return F.conv_transpose2d(x, w, b, padding=padding)


def gradient(x: Tensor, w: Tensor, b: Tensor | None, padding: list[int]) -> Tensor:
    """Of the input of a convolution whose output has the gradient x."""
    size = [n + 2 - 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
    image = x.new_empty((x.shape[0], w.shape[1], *size))
    ones, zeros = [1, 1], [0, 0]
    mask = [True, False, False]
    return aten.convolution_backward(x, image, w, None, ones, padding, ones, False, zeros, 1, mask)[
        0
    ]


def of_window(x: Tensor, g: Tensor, padding: list[int]) -> Tensor:
    """The gradient of the windows of a convolution of x whose output has the gradient g."""
    w = x.new_empty((g.shape[1], x.shape[1], 3, 3))
    ones, zeros, mask = [1, 1], [0, 0], [False, True, False]
    return aten.convolution_backward(g, x, w, None, ones, padding, ones, False, zeros, 1, mask)[1]


@contextlib.contextmanager
def without(algorithms: str) -> Iterator[None]:
    ocl.set_setting(DISABLED, algorithms)
    try:
        yield
    finally:
        ocl.set_setting(DISABLED, "")


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(without(NOT_WINOGRAD))

    def plain(self, call: Callable[..., Tensor], *args: Tensor | list[int] | None) -> Tensor:
        """Without transforms: by direct tiles, or with the kernels of GPUs by PyTorch's CPU."""
        if GPU_STYLE:
            return call(*(a.cpu() if isinstance(a, Tensor) else a for a in args))
        with without("conv.winograd"):
            y = call(*args)
            self.chosen("conv.direct")
            return y

    def chosen(self, name: str = WINOGRAD) -> None:
        self.assertEqual(ocl.last_choices()["conv"], name)

    def error(self, y: Tensor, exact: Tensor) -> float:
        return (y.cpu() - exact).square().mean().sqrt().item()


class Values(Case):
    def check(
        self, call, x: Tensor, w: Tensor, b: Tensor | None, padding: list[int], last: bool = False
    ) -> None:
        exact = call(x.double(), w.double(), None if b is None else b.double(), padding)
        ours = [None if t is None else t.to("ocl") for t in (x, w, b)]
        if last:
            ours[:2] = [t.to(memory_format=LAST) for t in ours[:2]]
        y = call(*ours, padding)
        self.chosen()
        self.assertEqual(y.is_contiguous(memory_format=LAST), last)
        other = self.plain(call, *ours, padding)
        self.assertLess(self.error(y, exact), WORSE * self.error(other, exact))

    def test_forward(self) -> None:
        for kind in ("normal", "offset", "wide"):
            for n, c, h, width, o, padding in SHAPES:
                with self.subTest(kind=kind, shape=(n, c, h, width, o, padding)):
                    x, w = random(n, c, h, width, seed=1, kind=kind), random(o, c, 3, 3, seed=2)
                    self.check(forward, x, w, None, pair(padding))

    def test_data(self) -> None:
        for kind in ("normal", "offset", "wide"):
            for n, c, h, width, o, padding in SHAPES:
                with self.subTest(kind=kind, shape=(n, c, h, width, o, padding)):
                    x, w = random(n, c, h, width, seed=1, kind=kind), random(c, o, 3, 3, seed=2)
                    self.check(transposed, x, w, random(o, seed=3), pair(padding))
                    self.check(gradient, x, w, None, pair(padding))

    @unittest.skipUnless(GPU_STYLE, "kernels for GPUs")
    def test_windows(self) -> None:
        for kind in ("normal", "offset", "wide"):
            for n, c, h, width, o, padding in SHAPES:
                p = pair(padding)
                rows, columns = h + 2 * p[0] - 2, width + 2 * p[1] - 2
                x, g = (
                    random(n, c, h, width, seed=1, kind=kind),
                    random(n, o, rows, columns, seed=2),
                )
                exact = of_window(x.double(), g.double(), p)
                for last in (False, True):
                    ours = [t.to("ocl") for t in (x, g)]
                    if last:
                        ours = [t.to(memory_format=LAST) for t in ours]
                    with self.subTest(kind=kind, shape=(n, c, h, width, o, padding), last=last):
                        w = of_window(*ours, p)
                        self.chosen()
                        with without("conv.winograd*,conv.columns"):
                            other = of_window(*ours, p)
                            self.assertEqual(ocl.last_choices()["conv"], "conv.implicit_weight")
                        ocl.set_setting(DISABLED, NOT_WINOGRAD)
                        self.assertLess(self.error(w, exact), WORSE * self.error(other, exact))

    def test_bias_and_channels_last(self) -> None:
        for n, c, h, width, o, padding in SHAPES:
            with self.subTest(shape=(n, c, h, width, o, padding)):
                x, w, b = (
                    random(n, c, h, width, seed=1),
                    random(o, c, 3, 3, seed=2),
                    random(o, seed=3),
                )
                self.check(forward, x, w, b, pair(padding))
                self.check(forward, x, w, b, pair(padding), last=True)
                self.check(
                    gradient, x, w.transpose(0, 1).contiguous(), None, pair(padding), last=True
                )

    def test_strides(self) -> None:
        x, w = random(2, 30, 37, 34, seed=1), random(80, 17, 3, 3, seed=2)
        apart = torch.cat([x, x], 3).to("ocl")[:, ::2, :, ::2]
        y = F.conv2d(apart[:, :15].transpose(2, 3), w.to("ocl")[::2, 1:16].flip(3), padding=1)
        self.chosen()
        exact = F.conv2d(
            torch.cat([x, x], 3)[:, ::2, :, ::2].transpose(2, 3).double(),
            w[::2, 1:16].flip(3).double(),
            padding=1,
        )
        torch.testing.assert_close(y.cpu().double(), exact, rtol=0, atol=1e-4)  # of numbers to 50

    def test_16_bits(self) -> None:
        for dtype in (torch.float16, torch.bfloat16):
            x, w = random(2, 17, 30, 37, seed=1).to(dtype), random(40, 17, 3, 3, seed=2).to(dtype)
            y = F.conv2d(x.to("ocl"), w.to("ocl"), padding=1)
            self.chosen()
            exact = F.conv2d(x.double(), w.double(), padding=1)
            half = torch.finfo(dtype).eps / 2  # computed in float32 and rounded once
            torch.testing.assert_close(y.cpu().double(), exact, rtol=half, atol=1e-4)


class NotFinite(Case):
    """Such a number reaches all of a tile through the transforms: it is computed again without."""

    def check(self, call, x: Tensor, w: Tensor, padding: int = 1) -> None:
        theirs = call(x, w, None, pair(padding))
        ours = [x.to("ocl"), w.to("ocl"), None, pair(padding)]
        y = call(*ours)
        self.chosen()
        for kind in (torch.isnan, torch.isposinf, torch.isneginf):
            self.assertTrue(torch.equal(kind(y.cpu()), kind(theirs)))
        y, other = (t.cpu().nan_to_num() for t in (y, self.plain(call, *ours)))
        if GPU_STYLE:  # sums in another order
            torch.testing.assert_close(y, other, rtol=1e-5, atol=1e-4)
        else:
            self.assertTrue(torch.equal(y, other))

    def test_inputs(self) -> None:
        for value in (float("inf"), -float("inf"), float("nan"), 3e38):
            for at in ((0, 0, 0, 0), (1, 16, 29, 36), (1, 5, 13, 17), (0, 9, 4, 7)):
                x, w = random(2, 17, 30, 37, seed=1), random(40, 17, 3, 3, seed=2)
                x[at] = value
                with self.subTest(value=value, at=at):
                    self.check(forward, x, w)
                    self.check(gradient, x, w.transpose(0, 1).contiguous())

    @unittest.skipUnless(GPU_STYLE, "kernels for GPUs")
    def test_windows(self) -> None:
        for value in (float("inf"), float("nan")):
            for at in ((0, 0, 0, 0), (1, 16, 29, 36), (1, 5, 13, 17)):
                x, g = random(2, 17, 30, 37, seed=1), random(2, 20, 30, 37, seed=2)
                x[at] = value
                with self.subTest(value=value, at=at):
                    self.check(lambda a, b, _, padding: of_window(a, b, padding), x, g)

    def test_weights(self) -> None:
        for value in (float("inf"), float("nan"), -3e38):
            x, w = random(2, 17, 30, 37, seed=1), random(40, 17, 3, 3, seed=2)
            w[39, 16, 1, 2] = value
            with self.subTest(value=value):
                self.check(forward, x, w, padding=0)  # a border is zeros: NaN times infinity

    def test_a_bias_is_not_asked(self) -> None:
        x, w, b = random(2, 17, 30, 37, seed=1), random(40, 17, 3, 3, seed=2), random(40, seed=3)
        plain = F.conv2d(x.to("ocl"), w.to("ocl"), b.to("ocl")).cpu()
        b[7] = float("inf")
        y = F.conv2d(x.to("ocl"), w.to("ocl"), b.to("ocl")).cpu()
        self.assertTrue(y[:, 7].isposinf().all())
        plain[:, 7] = y[:, 7]
        self.assertTrue(torch.equal(y, plain))  # the same sums, not those of the direct tiles

    def test_finite_again(self) -> None:
        x, w = random(2, 17, 30, 37, seed=1).to("ocl"), random(40, 17, 3, 3, seed=2).to("ocl")
        first = F.conv2d(x, w)
        bad = x.clone()
        bad[0, 0, 0, 0] = float("nan")
        F.conv2d(bad, w)
        self.assertTrue(torch.equal(F.conv2d(x, w), first))


class InPasses(Case):
    """Points of more than 256 MiB: of some images at a time."""

    @unittest.skipUnless(GPU_STYLE, "kernels for GPUs")
    def test_values(self) -> None:
        x, g = random(6, 64, 300, 300, seed=1), random(6, 8, 300, 300, seed=3)
        w = random(8, 64, 3, 3, seed=2)
        for call, a, b in (
            (lambda x, w: F.conv2d(x, w, padding=1), x, w),
            (lambda x, g: of_window(x, g, [1, 1]), x, g),
        ):
            y = call(a.to("ocl"), b.to("ocl"))
            self.chosen()
            exact = call(a.double(), b.double())
            self.assertLess(self.error(y, exact), WORSE * self.error(call(a, b), exact))


@unittest.skipUnless(GPU_STYLE, "kernels for GPUs")
class Refused(Case):
    def test_windows_whose_points_take_too_much_memory(self) -> None:
        x, w = torch.ones(1, 1400, 3, 3, device="ocl"), torch.ones(1400, 1400, 3, 3, device="ocl")
        F.conv2d(x, w)
        self.chosen("conv.general")


@unittest.skipIf(GPU_STYLE, "kernels for CPU drivers")
class Choice(Case):
    def choice(self, x: tuple[int, ...], w: tuple[int, ...], **kwargs: object) -> str:
        F.conv2d(random(*x, seed=1).to("ocl"), random(*w, seed=2).to("ocl"), **kwargs)
        return ocl.last_choices()["conv"]

    def test_rule(self) -> None:
        big, window = (4, 32, 28, 28), (32, 32, 3, 3)
        self.assertEqual(self.choice(big, window), "conv.winograd")
        for what, x, w, kwargs in (
            ("few tiles", (1, 256, 7, 7), (256, 256, 3, 3), {"padding": 1}),
            ("many windows", (1, 512, 14, 14), (512, 512, 3, 3), {"padding": 1}),
            ("little work", (1, 16, 14, 14), (16, 16, 3, 3), {}),
            ("few input channels", (4, 3, 56, 56), (64, 3, 3, 3), {}),
            ("stride", big, window, {"stride": 2}),
            ("dilation", big, window, {"dilation": 2}),
            ("groups", big, (32, 16, 3, 3), {"groups": 2}),
            ("a window of 5", big, (32, 32, 5, 5), {}),
        ):
            with self.subTest(what=what):
                self.assertEqual(self.choice(x, w, **kwargs), "conv.direct")


class GpuStyle(gpu_style.InGpuStyle, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
