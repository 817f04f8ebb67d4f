"""Batch and group normalisation: both kernel styles, statistics in one piece and in many, what is
not finite."""

import os
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import InGpuStyle, of_style
from torch.nn import functional as F

ELEMENTS = os.environ.get("OCLTENSOR_KERNEL_STYLE") == "gpu"
# (sample, channels, *plane): short runs, odd ones, vectors of 2, 4 and 8, and statistics that fill
# a device by themselves.
SHAPES = [
    (3, 5, 4),
    (5, 6, 7, 7),
    (2, 4, 6, 3),
    (9, 4, 12),
    (3, 4, 8, 16),
    (33, 3, 14, 14),
    (1, 4, 7),
    (2, 2, 150, 150),
    (1, 2, 211, 99),
]


# Channels that are the last dimension: odd ones, vectors of 2, 4 and 8, more than a work-group has
# at once, few rows and many.
LAST = [(3, 5, 2, 3), (7, 6), (2, 36, 7, 5), (2, 24, 9, 9), (3, 1048, 3, 3), (2, 8, 130, 120)]


def cotangent(x):
    return torch.linspace(-1, 2, x.numel()).view(x.shape).to(x.dtype)


def formats(x):
    """The tensor as it is, and with its channels last."""
    return (x, x.to(memory_format=torch.channels_last)) if x.ndim == 4 else (x,)


def batch(x, w, b, training, device, dtype):
    """Output, gradients and running statistics."""
    dy, mean, var = (
        cotangent(x),
        torch.linspace(-1, 1, x.shape[1]),
        torch.linspace(0.5, 2, x.shape[1]),
    )
    dy, mean, var = (t.to(x.dtype).to(device, dtype) for t in (dy, mean, var))
    x, w, b = (None if t is None else t.to(device, dtype).requires_grad_() for t in (x, w, b))
    out = F.batch_norm(x, mean, var, w, b, training, 0.25, 1e-3)
    return [out, *torch.autograd.grad(out, [t for t in (x, w, b) if t is not None], dy), mean, var]


def group(x, w, b, groups, device, dtype):
    dy = cotangent(x).to(device, dtype)
    x, w, b = (None if t is None else t.to(device, dtype).requires_grad_() for t in (x, w, b))
    out = F.group_norm(x, groups, w, b, 1e-3)
    return [out, *torch.autograd.grad(out, [t for t in (x, w, b) if t is not None], dy)]


class Norms(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def agree(self, ours, exact, eps) -> None:
        terms = exact[0].numel() / exact[0].shape[1]
        for i, (a, e) in enumerate(zip(ours, exact, strict=True)):
            # Relative to the largest result; for gradients of weights, to what their terms are
            # together.
            largest = max([1, terms if e.ndim == 1 else 1, *e[e.isfinite()].abs().tolist()])
            torch.testing.assert_close(
                a.detach().cpu().double(),
                e.detach(),
                rtol=0,
                atol=100 * eps * largest,
                equal_nan=True,
                msg=lambda m, i=i: f"{i}: {m}",
            )

    def shapes(self, shapes=SHAPES, last=False):
        torch.manual_seed(5)
        for dtype, eps in (
            (torch.float32, 2**-24),
            (torch.float64, 2**-53),
            *of_style(((torch.float16, 2**-11), (torch.bfloat16, 2**-9))),
        ):
            for i, shape in enumerate(shapes):
                if dtype != torch.float32 and i not in (1, 4, 7):
                    continue
                x = (torch.randn(shape) + 3).to(dtype)
                if last:
                    x = formats(x)[-1]
                w, b = torch.randn(shape[1]).to(dtype), torch.randn(shape[1]).to(dtype)
                yield dtype, eps, x, w if i % 3 else None, b if i % 3 else None

    def test_batch(self) -> None:
        for dtype, eps, x, w, b in self.shapes():
            for training in (True, False):
                with self.subTest(dtype=dtype, shape=x.shape, training=training):
                    exact = batch(x, w, b, training, "cpu", torch.float64)
                    self.agree(batch(x, w, b, training, "ocl", dtype), exact, eps)

    def test_batch_of_channels_last(self) -> None:
        for dtype, eps, x, w, b in self.shapes(LAST, last=True):
            for training in (True, False):
                with self.subTest(dtype=dtype, shape=x.shape, training=training):
                    exact = batch(x, w, b, training, "cpu", torch.float64)
                    self.agree(batch(x, w, b, training, "ocl", dtype), exact, eps)

    def test_group(self) -> None:
        for dtype, eps, x, w, b in self.shapes():
            for groups in (1, x.shape[1]):
                with self.subTest(dtype=dtype, shape=x.shape, groups=groups):
                    exact = group(x, w, b, groups, "cpu", torch.float64)
                    self.agree(group(x, w, b, groups, "ocl", dtype), exact, eps)

    def test_far_from_zero(self) -> None:
        for shape in ((4, 2, 7, 7), (3, 2, 120, 120)):
            x = torch.randn(shape).mul_(0.25).add_(1e4).double()
            # An outlier at any of the places that the pivot of distances is chosen from. The sum of
            # what is left has an error of some eps of the outlier, which the division by the count
            # makes small beside eps of the mean; adding the pivot rounds by half an eps. So 1 eps
            # bounds the mean for every seed.
            spread = x.clone()
            for place in (0, shape[2] * shape[3] // 2, -1, None):
                x, first = spread.clone(), 1e4 if place is None else -1e4
                if place is not None:
                    x[0].flatten(1)[:, place] = first
                x = x.float().double()
                exact = torch.ops.aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
                # CPU drivers sweep over channels_last; their pivot is the first element.
                last = ELEMENTS or place != 0
                for layout in formats(x.float())[: 2 if last else 1]:
                    out, mean, scale = torch.ops.aten.native_batch_norm(
                        layout.to("ocl"), None, None, None, None, True, 0.1, 1e-5
                    )
                    torch.testing.assert_close(mean.cpu().double(), exact[1], rtol=2**-23, atol=0)
                    torch.testing.assert_close(scale.cpu().double(), exact[2], rtol=1e-5, atol=0)
                    torch.testing.assert_close(
                        out.cpu().double(), exact[0], rtol=0, atol=1e-4 if first > 0 else 3e-3
                    )

    def test_not_finite(self) -> None:
        for shape in ((2, 4, 5, 5), (2, 4, 97, 97)):
            x = torch.randn(shape)
            x[1, 0, 2, 3], x[0, 1, 0, 0], x[1, 2, 4, 4] = float("inf"), float("-inf"), float("nan")
            exact = torch.ops.aten.native_batch_norm(
                x.double(), None, None, None, None, True, 0.1, 1e-5
            )
            for layout in formats(x):
                ours = torch.ops.aten.native_batch_norm(
                    layout.to("ocl"), None, None, None, None, True, 0.1, 1e-5
                )
                self.agree(ours, exact, 2**-22)
                self.assertEqual(ours[1].cpu()[:2].tolist(), [float("inf"), float("-inf")])

    def test_equal_elements_vary_by_zero(self) -> None:
        for shape in ((3, 2, 7, 7), (3, 2, 130, 130)):
            for x in formats(torch.full(shape, 0.1, device="ocl")):
                out, _, scale = torch.ops.aten.native_batch_norm(
                    x, None, None, None, None, True, 0.1, 0.25
                )
                self.assertEqual(out.abs().max().item(), 0)
                self.assertEqual(scale.cpu().tolist(), [2, 2])

    def test_the_same_bits_again(self) -> None:
        x, w = torch.randn(2, 2, 150, 150), torch.randn(2)
        for work in (
            lambda: batch(x, w, w, True, "ocl", torch.float32),
            lambda: group(x, w, w, 1, "ocl", torch.float32),
        ):
            for a, b in zip(work(), work(), strict=True):
                self.assertTrue(torch.equal(a, b))

    def launches(self, name, *args) -> int:
        before = torch.ocl.counters()["launches"]
        getattr(torch.ops.aten, name)(*args)
        return torch.ocl.counters()["launches"] - before

    @unittest.skipUnless(ELEMENTS, "counted by test_elements in the style of GPUs")
    def test_launches(self) -> None:
        units = torch.ocl.get_device_properties(0).compute_units
        many, few = torch.randn(4, 2 * units, 7, 7), torch.randn(2, 1, 150, 150)
        for x, wanted in ((many.to("ocl"), 1), (few.to("ocl"), 2)):
            n, c, inner = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
            w = torch.ones(c, device="ocl")
            self.assertEqual(
                self.launches("native_batch_norm", x, w, w, w, w, True, 0.1, 1e-5), wanted
            )
            self.assertEqual(self.launches("native_batch_norm", x, w, w, w, w, False, 0.1, 1e-5), 1)
            args = (x, x, w, w, w, w, w, True, 1e-5, [True] * 3)
            self.assertEqual(self.launches("native_batch_norm_backward", *args), wanted)
            self.assertEqual(
                self.launches("native_group_norm", x, w, w, n, c, inner, 1, 1e-5), wanted
            )
            of_samples = torch.ones(n, 1, device="ocl")
            args = (x, x, of_samples, of_samples, w, n, c, inner, 1, [True] * 3)
            self.assertEqual(self.launches("native_group_norm_backward", *args), 2)


if __name__ == "__main__":
    unittest.main()
