"""Fourier transforms against PyTorch's CPU in float64."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

# Of the result's largest element. A transform loses about eps log2(n) of its norm (N. Higham,
# Accuracy and Stability of Numerical Algorithms, 2002, theorem 24.2), here at most 17 * 2^-24 =
# 1e-6; Bluestein's lengths take three.
TOLERANCE = 3e-6

LENGTHS = [*range(1, 34), 49, 64, 100, 121, 128, 243, 500, 1009, 1024, 4096, 9973, 65536]


class Transforms(unittest.TestCase):
    def check(self, name: str, x: torch.Tensor, *args, **keywords) -> None:
        function = getattr(torch.fft, name)
        wide = x.to(torch.complex128 if x.is_complex() else torch.float64)
        expected = function(wide, *args, **keywords)
        result = function(x.to("ocl"), *args, **keywords)
        self.assertEqual(result.device.type, "ocl")
        self.assertEqual(result.shape, expected.shape)
        self.assertEqual(result.is_complex(), expected.is_complex())
        error = (result.cpu() - expected).abs().max() / expected.abs().max()
        self.assertLess(error.item(), TOLERANCE)

    def test_lengths_and_places(self) -> None:
        generator = torch.Generator().manual_seed(5)
        for n in LENGTHS:
            for shape, dim in (((n,), 0), ((3, n), 1), ((n, 5), 0), ((2, n, 3), 1)):
                real = torch.randn(shape, generator=generator)
                numbers = torch.complex(real, torch.randn(shape, generator=generator))
                with self.subTest(shape=shape, dim=dim):
                    self.check("fft", numbers, dim=dim)
                    self.check("ifft", numbers, dim=dim)
                    self.check("fft", real, dim=dim)
                    self.check("rfft", real, dim=dim)
                    self.check("ihfft", real, dim=dim)
                    # not quite Hermitian: imaginary parts that mean nothing are left out
                    half = numbers.narrow(dim, 0, n // 2 + 1)
                    self.check("irfft", half, n=n, dim=dim)
                    self.check("hfft", half, n=n, dim=dim)

    def test_dimensions_and_norms(self) -> None:
        generator = torch.Generator().manual_seed(6)
        for sizes, norm in itertools.product(
            ((4, 6), (8, 9, 10), (3, 7, 11), (1, 5), (16, 17)), ("forward", "backward", "ortho")
        ):
            real = torch.randn(2, *sizes, generator=generator)
            numbers = torch.complex(real, torch.randn(2, *sizes, generator=generator))
            dims = tuple(range(1, 1 + len(sizes)))
            for order in (dims, dims[::-1]):
                with self.subTest(sizes=sizes, norm=norm, dims=order):
                    self.check("fftn", numbers, dim=order, norm=norm)
                    self.check("ifftn", numbers, dim=order, norm=norm)
                    self.check("rfftn", real, dim=order, norm=norm)
                    half = torch.fft.rfftn(real, dim=order)
                    self.check(
                        "irfftn", half, s=[real.shape[d] for d in order], dim=order, norm=norm
                    )

    def test_strides_and_conjugates(self) -> None:
        generator = torch.Generator().manual_seed(7)
        numbers = torch.randn(12, 10, 6, dtype=torch.complex64, generator=generator)
        for view in (
            lambda t: t.permute(2, 0, 1),
            lambda t: t[::2, 1::3],
            lambda t: t[3:, :1].expand(-1, 4, -1),
            lambda t: t.conj(),
            lambda t: t.flip(0).mT.conj(),
        ):
            expected = torch.fft.fft2(view(numbers.to(torch.complex128)))
            result = torch.fft.fft2(view(numbers.to("ocl")))
            error = (result.cpu() - expected).abs().max() / expected.abs().max()
            self.assertLess(error.item(), TOLERANCE)
        self.check("rfft", torch.randn(9, 8, generator=generator).t())

    def test_gradients(self) -> None:
        generator = torch.Generator().manual_seed(8)
        for name in ("fft", "ifft", "rfft", "irfft", "fft2", "rfft2", "irfft2"):
            real = torch.randn(6, 9, generator=generator)
            x = (
                real
                if name in ("rfft", "rfft2")
                else torch.complex(real, torch.randn(6, 9, generator=generator))
            )
            gradients = []
            for device in ("cpu", "ocl"):
                leaf = x.to(device).detach().requires_grad_()
                result = getattr(torch.fft, name)(leaf)
                weight = torch.linspace(-1, 2, result.numel()).reshape(result.shape).to(device)
                (result * weight).abs().square().sum().backward()
                gradients.append(leaf.grad.cpu())
            torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-4)

    def test_empty_and_refused(self) -> None:
        empty = torch.empty(0, 8, dtype=torch.complex64, device="ocl")
        self.assertEqual(torch.fft.fft(empty).shape, (0, 8))
        self.assertEqual(torch.fft.rfft(empty.real).shape, (0, 5))
        with self.assertRaisesRegex(RuntimeError, "Invalid number of data points"):
            torch.fft.fft(empty, dim=0)
        with self.assertRaisesRegex(NotImplementedError, "_fft_r2c"):
            torch.ops.aten._fft_r2c(empty.real.bfloat16() + 1, [1], 0, True)

    def test_out(self) -> None:
        x = torch.randn(5, 6, dtype=torch.complex64)
        out = torch.full((6, 5), torch.nan, dtype=torch.complex64, device="ocl").t()
        torch.fft.fft(x.to("ocl"), out=out)
        torch.testing.assert_close(out.cpu(), torch.fft.fft(x), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
