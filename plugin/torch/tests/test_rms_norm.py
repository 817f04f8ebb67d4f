"""rms_norm and its gradients: kernels of layer normalisation, against torch's CPU in float64."""

import unittest

import torch
import torch_ocl  # noqa: F401
from torch import nn

# Sums of up to some hundred terms near 1, in float32; 16-bit results are rounded once more.
TOLERANCE = {
    torch.float64: {"rtol": 1e-12, "atol": 1e-12},
    torch.float32: {"rtol": 2e-5, "atol": 2e-5},
    torch.float16: {"rtol": 2e-3, "atol": 2e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1.6e-2},
}
SHAPES = (
    ((5, 7), 1),
    ((3, 4, 33), 1),
    ((2, 3, 4, 5), 2),
    ((6, 1024), 1),
    ((700, 16), 1),
    ((3, 1), 1),
)


class RmsNorm(unittest.TestCase):
    def check(self, shape: tuple[int, ...], count: int, dtype: torch.dtype, **options) -> None:
        affine, eps = options.get("affine", True), options.get("eps")
        torch.manual_seed(1)
        x, dy = (torch.randn(shape).to(dtype) for _ in range(2))
        w = (torch.rand(shape[-count:]) + 0.5).to(dtype) if affine else None
        results = []
        for device in ("cpu", "ocl"):
            cast = torch.float64 if device == "cpu" else dtype
            leaves = [t.clone().to(device, cast).requires_grad_() for t in (x, w) if t is not None]
            eps_ = eps
            if eps is None and device == "cpu":  # that of the type in which ocl computes
                wide = torch.float64 if dtype == torch.float64 else torch.float32
                eps_ = torch.finfo(wide).eps
            y = nn.functional.rms_norm(leaves[0], shape[-count:], *leaves[1:], eps=eps_)
            y.backward(dy.to(device, cast))
            results.append([y.detach()] + [t.grad for t in leaves])
        scale = max(1.0, results[0][-1].abs().max().item())  # of sums over rows
        for k, (a, b) in enumerate(zip(results[1], results[0], strict=True)):
            self.assertEqual(a.dtype, dtype)
            s = scale if k == 2 else 1.0
            torch.testing.assert_close(a.cpu().double() / s, b / s, **TOLERANCE[dtype])

    def test_values_and_gradients(self) -> None:
        for dtype in TOLERANCE:
            for shape, count in SHAPES:
                for options in ({}, {"affine": False}, {"eps": 1e-3}):
                    with self.subTest(dtype=dtype, shape=shape, **options):
                        self.check(shape, count, dtype, **options)

    def test_layouts_and_no_elements(self) -> None:
        torch.manual_seed(2)
        x = torch.randn(9, 6)
        want = nn.functional.rms_norm(x.t(), (9,))
        got = nn.functional.rms_norm(x.to("ocl").t(), (9,))
        torch.testing.assert_close(got.cpu(), want, **TOLERANCE[torch.float32])
        for shape in ((0, 4), (3, 0)):
            self.assertEqual(
                nn.functional.rms_norm(torch.empty(shape, device="ocl"), shape[1:]).shape, shape
            )

    def test_numbers_far_from_zero(self) -> None:
        x = torch.full((4, 100), 1e18)
        got = nn.functional.rms_norm(x.to("ocl"), (100,)).cpu()
        torch.testing.assert_close(got, torch.ones(4, 100), rtol=1e-6, atol=0)
        x[1, 3] = float("nan")
        got = nn.functional.rms_norm(x.to("ocl"), (100,)).cpu()
        self.assertEqual(got.isnan().any(1).tolist(), [False, True, False, False])

    def test_it_is_one_kernel(self) -> None:
        """Not the composition of pow, mean, add, rsqrt and mul."""
        x = torch.randn(4, 8, device="ocl", requires_grad=True)
        y = nn.functional.rms_norm(x, (8,))
        self.assertIn("FusedRmsNorm", type(y.grad_fn).__name__)

    def test_second_derivatives(self) -> None:
        torch.manual_seed(3)
        x = torch.randn(3, 5, dtype=torch.float64)
        w = torch.rand(5, dtype=torch.float64) + 0.5
        results = []
        for device in ("cpu", "ocl"):
            a, b = (t.clone().to(device).requires_grad_() for t in (x, w))
            y = nn.functional.rms_norm(a, (5,), b, 1e-5)
            (grad,) = torch.autograd.grad(y.pow(3).sum(), a, create_graph=True)
            grad.square().sum().backward()
            results.append([a.grad.cpu(), b.grad.cpu()])
        for ours, theirs in zip(results[1], results[0], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    unittest.main()
