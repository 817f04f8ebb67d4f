"""Convolutions and their gradients in every form that an algorithm treats on its own, against
float64."""

from __future__ import annotations

import itertools
import unittest
from dataclasses import dataclass

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import InGpuStyle
from torch.nn import functional

LAST = torch.channels_last


@dataclass(frozen=True)
class Form:
    source: int  # channels
    target: int
    map: tuple[int, int]
    window: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    images: int = 2
    transposed: bool = False
    bias: bool = True
    dtype: torch.dtype = torch.float32
    format: torch.memory_format = torch.contiguous_format


FORMS = (
    # Whole vectors of pixels or of channels, and tiles that end within the map.
    Form(16, 16, (8, 8), (3, 3), padding=(1, 1)),
    Form(16, 16, (8, 8), (3, 3), padding=(1, 1), format=LAST),
    Form(12, 10, (7, 5), (3, 3), padding=(1, 1)),
    Form(12, 10, (7, 5), (3, 3), padding=(2, 0), format=LAST),
    # 65 channels are two tiles of 64, or one of 128.
    Form(8, 65, (6, 7), (1, 3), bias=False),
    # 16-bit numbers one by one for tiles of 128, where twice as many items bring half as many each:
    # forward, to the data, along the window, in pieces.
    Form(12, 70, (9, 11), (3, 3), (2, 2), (1, 1), dtype=torch.bfloat16),
    Form(72, 16, (7, 6), (3, 3), (2, 2), (1, 1), dtype=torch.bfloat16),
    Form(3, 66, (12, 12), (4, 4), (4, 4), dtype=torch.float16),
    Form(96, 80, (4, 5), (3, 3), padding=(1, 1), images=1, dtype=torch.float16),
    # Long sums of few results are cut into pieces.
    Form(128, 16, (5, 7), (3, 3), padding=(1, 1), images=1),
    Form(128, 16, (5, 7), (3, 3), padding=(1, 1), images=1, format=LAST),
    Form(64, 16, (4, 4), (5, 5), padding=(2, 2), images=1, bias=False, dtype=torch.float16),
    # Few channels: the terms of a step are the window's columns.
    Form(3, 16, (11, 9), (7, 7), (2, 2), (3, 3), bias=False),
    Form(1, 9, (8, 8), (3, 9), (1, 1), (1, 8), (1, 2), format=LAST),
    Form(3, 64, (8, 8), (3, 3), padding=(1, 1), dtype=torch.float16),
    # Windows of one element: products of each image, of one image, and of very many.
    Form(24, 20, (9, 8), (1, 1), images=3),
    Form(9, 5, (7, 7), (1, 1), images=1, bias=False),
    Form(8, 12, (6, 6), (1, 1), images=70),
    Form(8, 12, (6, 6), (1, 1), images=3, transposed=True),
    # Strides: some remainders of the position meet no tap of the window, others no position.
    Form(16, 24, (9, 11), (3, 3), (2, 2), (1, 1)),
    Form(16, 24, (9, 11), (1, 1), (2, 2)),
    Form(8, 8, (9, 12), (2, 2), (3, 4), format=LAST),
    Form(8, 16, (12, 13), (3, 2), (2, 2), (2, 1), (2, 3)),
    Form(8, 16, (12, 13), (3, 3), (3, 1), (0, 3), (2, 2), dtype=torch.bfloat16),
    Form(16, 8, (6, 5), (4, 4), (2, 2), (1, 1), transposed=True),
    Form(16, 8, (5, 6), (3, 3), (2, 3), (1, 0), (1, 2), transposed=True, format=LAST),
    Form(16, 16, (8, 8), (3, 3), padding=(1, 1), dtype=torch.float16, format=LAST),
    Form(24, 16, (6, 6), (3, 3), padding=(1, 1), dtype=torch.bfloat16),
    # A map so small that windows lie outside of it.
    Form(8, 8, (1, 2), (7, 7), padding=(3, 3)),
    # Many pixels: gradients of weights are cut into pieces; rows of whole steps, and of parts.
    Form(8, 72, (16, 16), (3, 3), padding=(1, 1), images=3),
    Form(5, 12, (21, 19), (3, 2), (1, 2), (1, 1), images=4, dtype=torch.float16),
    Form(12, 68, (20, 13), (3, 3), padding=(1, 1), images=3, format=LAST, dtype=torch.bfloat16),
)


def convolve(form: Form, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
    function = functional.conv_transpose2d if form.transposed else functional.conv2d
    return function(x, w, b, stride=form.stride, padding=form.padding, dilation=form.dilation)


class Convolutions(InGpuStyle, unittest.TestCase):
    def test_forms(self) -> None:
        torch.manual_seed(7)
        for form in FORMS:
            with self.subTest(form=form):
                channels = (form.source, form.target)
                x = torch.randn(form.images, form.source, *form.map)
                w = torch.randn(*(channels if form.transposed else channels[::-1]), *form.window)
                b = torch.randn(form.target) if form.bias else None
                self.compare(form, x, w, b)

    def compare(self, form: Form, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> None:
        given = [None if t is None else t.to(form.dtype) for t in (x, w, b)]
        for i in (0, 1):
            given[i] = given[i].to(memory_format=form.format)
        sides = []
        seed = None
        for device, dtype in (("cpu", torch.float64), ("ocl", form.dtype)):
            inputs = [
                None if t is None else t.to(device, dtype).detach().requires_grad_() for t in given
            ]
            out = convolve(form, *inputs)
            if seed is None:
                seed = torch.randn(out.shape).to(form.dtype)
            leaves = [t for t in inputs if t is not None]
            grads = torch.autograd.grad(out, leaves, seed.to(device, dtype))
            sides.append([t.detach().cpu().double() for t in (out, *grads)])
        # Each result is rounded once. Sums in float32 of up to a few thousand terms of size 1 lose
        # some sqrt(n) * 2^-24 beside it.
        for theirs, ours in zip(*sides, strict=True):
            scale = theirs.abs().max().item()
            terms = 4e-6 * max(1.0, scale)
            tolerance = torch.finfo(form.dtype).eps * scale + terms
            self.assertLessEqual((ours - theirs).abs().max().item(), tolerance)

    def test_integers(self) -> None:
        """Exact, modulo the type's range, as on the CPU."""
        types = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
        forms = (
            {},
            {"stride": 2, "padding": 1},
            {"dilation": 2, "padding": 2},
            {"groups": 2},
        )
        generator = torch.Generator().manual_seed(3)
        for dtype, rank, transposed, form in itertools.product(
            types, (1, 2, 3), (False, True), forms
        ):
            with self.subTest(dtype=dtype, rank=rank, transposed=transposed, **form):
                info = torch.iinfo(dtype)
                groups = form.get("groups", 1)

                def draw(*shape: int, info=info, dtype=dtype) -> torch.Tensor:
                    low, high = max(info.min, -(2**31)), min(info.max, 2**31)
                    return torch.randint(low, high, shape, generator=generator).to(dtype)

                window = (3, 2, 3)[:rank]
                x = draw(2, 4, *(7, 6, 5)[:rank])
                w = draw(*((4, 6 // groups) if transposed else (6, 4 // groups)), *window)
                name = f"conv{'_transpose' * transposed}{rank}d"
                for bias in (None, draw(6)):
                    given = (x, w, bias)
                    wide = (None if t is None else t.long() for t in given)
                    # PyTorch's CPU has short integers only where nothing is transposed or dilated.
                    right = getattr(functional, name)(*wide, **form).to(dtype)
                    ours = (None if t is None else t.to("ocl") for t in given)
                    got = getattr(functional, name)(*ours, **form).cpu()
                    self.assertEqual(got.dtype, dtype)
                    self.assertTrue(torch.equal(got, right))

    def test_planes_between_padding(self) -> None:
        """A third dimension of size 1 whose only window lies in the padding: nothing but the bias
        is left, and no gradient."""
        x, w, b = torch.randn(2, 8, 1, 6, 6), torch.randn(8, 8, 1, 3, 3), torch.randn(8)
        sides = []
        for device in ("cpu", "ocl"):
            inputs = [t.to(device).detach().requires_grad_() for t in (x, w, b)]
            out = functional.conv3d(*inputs, stride=(3, 1, 1), padding=1)
            grads = torch.autograd.grad(out, inputs, torch.ones_like(out))
            sides.append([t.detach().cpu() for t in (out, *grads)])
        for theirs, ours in zip(*sides, strict=True):
            self.assertTrue(ours.equal(theirs))

    def test_infinity_stays_in_its_windows(self) -> None:
        """No algorithm multiplies it by the zeros that it pads with."""
        x = torch.ones(1, 16, 9, 9)
        x[0, 3, 4, 4] = torch.inf
        w = torch.ones(16, 16, 3, 3)
        ours = functional.conv2d(x.to("ocl"), w.to("ocl"), padding=1).cpu()
        self.assertTrue(ours.equal(functional.conv2d(x, w, padding=1)))

    def test_infinity_outside_of_all_windows(self) -> None:
        """Neither the last column, which the stride leaves out, nor what lies beside the map in
        memory is multiplied by the zeros that fill up a row."""
        for format in (torch.contiguous_format, LAST):
            around = torch.full((2, 16, 10, 12), torch.inf).to("ocl", memory_format=format)
            x = around[:, :, 1:9, 1:9]
            x[..., :7] = 1
            grad = torch.ones(2, 16, 3, 3).to("ocl", memory_format=format)
            w = torch.ones(16, 16, 3, 3).to("ocl", memory_format=format)
            ours = torch.ops.aten.convolution_backward(
                grad, x, w, None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1, (False, True, False)
            )[1]
            self.assertTrue(ours.cpu().equal(torch.full((16, 16, 3, 3), 18.0)))


if __name__ == "__main__":
    unittest.main()
