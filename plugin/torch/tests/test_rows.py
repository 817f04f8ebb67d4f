"""Operators on rows against PyTorch's CPU at the lengths where kernels change, as the device is and
with GPU-style kernels."""

import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import InGpuStyle

LENGTHS = [1, 15, 16, 17, 255, 256, 257, 1024, 4095, 4096, 4097, 8191, 8192, 8193, 50257]
NAN, INF = float("nan"), float("inf")


class Rows(InGpuStyle, unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(3)

    def close(
        self,
        result: torch.Tensor,
        expected: torch.Tensor,
        tolerance: float = 2e-6,
        each: bool = False,
    ) -> None:
        """Within `tolerance` of the largest number, or of `each` one; NaN and infinities where they
        belong."""
        result, expected = result.cpu().double(), expected.double()
        self.assertEqual(result.shape, expected.shape)
        finite = expected.isfinite()
        self.assertTrue(torch.equal(result.isfinite(), finite))
        self.assertTrue(torch.equal(result[~finite].nan_to_num(7), expected[~finite].nan_to_num(7)))
        if finite.any():
            scale = expected[finite].abs() if each else expected[finite].abs().max()
            self.assertLessEqual(
                ((result - expected)[finite].abs() / scale.clamp(1e-30)).max().item(), tolerance
            )

    def special(self, n: int) -> torch.Tensor:
        """Rows without surprise, far from 0, with -inf, of nothing but -inf, with NaN, with inf."""
        x = torch.randn(7, n)
        x[1] = x[1] * 3 + 300
        x[2, : n // 2 + 1] = -INF
        x[3] = -INF
        x[4, n - 1] = NAN
        x[5, n // 2] = INF
        x[6, n - 1] = 40
        return x

    def test_softmax(self) -> None:
        for n in LENGTHS:
            x = self.special(n)
            for name in ("softmax", "log_softmax"):
                function = getattr(torch, name)
                with self.subTest(name=name, n=n):
                    self.close(function(x.to("ocl"), 1), function(x.double(), 1), 3e-6)
                    rows = x[[0, 1, 6]]
                    grad = torch.randn(3, n)
                    here, there = rows.double().requires_grad_(), rows.to("ocl").requires_grad_()
                    function(here, 1).backward(grad.double())
                    function(there, 1).backward(grad.to("ocl"))
                    self.close(there.grad, here.grad, 3e-5)

    def test_softmax_of_halves(self) -> None:
        for dtype, tolerance in ((torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
            x = self.special(9001).to(dtype)
            self.close(torch.softmax(x.to("ocl"), 1), torch.softmax(x.double(), 1), tolerance)

    def test_variance(self) -> None:
        for n in LENGTHS[1:]:
            x = torch.randn(7, n)
            x[1] += 5000
            x[2] = 7.25
            x[3, n // 2] = NAN
            x[4, 0] = INF
            x[5] += 1e6
            x[6, 0] = 1e4  # what distances are taken to
            for correction in (0, 1):
                with self.subTest(n=n, correction=correction):
                    wide, there = x.double(), x.to("ocl")
                    self.close(
                        there.var(1, correction=correction),
                        wide.var(1, correction=correction),
                        2e-5,
                        True,
                    )
                    self.close(
                        there.std(1, correction=correction),
                        wide.std(1, correction=correction),
                        2e-5,
                        True,
                    )
                    # ATen adds to its mean number by number here and gets NaN from inf; its mean
                    # alone is inf, as ours always.
                    self.assertEqual(
                        torch.var_mean(there[4], 0, correction=correction)[1].item(), INF
                    )
                    both = torch.var_mean(there[:4], 1, correction=correction)
                    for result, expected in zip(
                        both, torch.var_mean(wide[:4], 1, correction=correction), strict=True
                    ):
                        self.close(result, expected, 2e-5)
                    self.assertEqual(there.var(1, correction=correction)[2].item(), 0)
        x = torch.randn(3, 20, 50)
        for dims in ((1, 2), (2,), (0, 2), (0, 1, 2), (0,), (1,)):
            self.close(
                x.to("ocl").var(dims, keepdim=True), x.double().var(dims, keepdim=True), 2e-5
            )
        self.close(x.to("ocl").transpose(1, 2).std(2), x.double().transpose(1, 2).std(2), 2e-5)
        self.close(x.to("ocl", torch.float16).var(2), x.half().double().var(2), 2e-3)
        self.close(torch.randn(4, 16, device="ocl").var(1, correction=16), torch.full((4,), INF))

    def test_extremes(self) -> None:
        for n in LENGTHS:
            x = torch.randn(5, n).mul(20).round()
            x[1, n // 2] = NAN
            x[2] = -INF
            x[3] = 4
            for name in ("argmax", "argmin"):
                with self.subTest(name=name, n=n):
                    for y, dim in (
                        (x, 1),
                        (x.t(), 0),
                        (x.t().contiguous(), 0),
                        (x.half(), 1),
                        (x.nan_to_num(3).int(), 1),
                    ):
                        result = getattr(y.to("ocl"), name)(dim).cpu()
                        expected = getattr(y, name)(dim)
                        at = y.gather(dim, result.unsqueeze(dim)).squeeze(dim)
                        self.assertTrue(
                            torch.equal(
                                at.nan_to_num(99),
                                y.gather(dim, expected.unsqueeze(dim)).squeeze(dim).nan_to_num(99),
                            )
                        )
                        first = (y == at.unsqueeze(dim)) | (y.isnan() & at.isnan().unsqueeze(dim))
                        self.assertTrue(torch.equal(result, first.int().argmax(dim)))

    def test_broadcast_rows_and_columns(self) -> None:
        for n in (5, 255, 256, 257, 1023, 1024, 1025, 3000):
            x = torch.randn(3, 7, n)
            for other in (
                torch.randn(n),
                torch.randn(7, 1),
                torch.randn(3, 1, n),
                torch.randn(3, 1, 1),
                torch.randn(1),
            ):
                with self.subTest(n=n, other=tuple(other.shape)):
                    self.assertTrue(torch.equal((x.to("ocl") + other.to("ocl")).cpu(), x + other))
                    self.assertTrue(torch.equal((other.to("ocl") - x.to("ocl")).cpu(), other - x))
                    self.assertTrue(
                        torch.equal(
                            (x.half().to("ocl") * other.half().to("ocl")).cpu(),
                            x.half() * other.half(),
                        )
                    )
                    self.assertTrue(torch.equal((x.to("ocl") < other.to("ocl")).cpu(), x < other))
            there = x.to("ocl")
            self.assertTrue(
                torch.equal((there[:, 1:6:2] + there[1, :3]).cpu(), x[:, 1:6:2] + x[1, :3])
            )
            there[:, :, 1:] += there[:, :1, : n - 1].clone()
            x[:, :, 1:] += x[:, :1, : n - 1].clone()
            self.assertTrue(torch.equal(there.cpu(), x))


if __name__ == "__main__":
    unittest.main()
