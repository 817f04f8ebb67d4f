"""Resampling by Lanczos' filter: values and gradients against torch's CPU."""

import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

SIZES = (((9, 8), (4, 5)), ((4, 5), (13, 7)), ((6, 30), (6, 4)), ((1, 3), (5, 2)))
VERSION = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])


@unittest.skipIf(VERSION < (2, 12), "PyTorch has the filter from 2.12 on")
class Lanczos(unittest.TestCase):
    def test_values_and_gradients(self) -> None:
        generator = torch.Generator().manual_seed(2)
        resample = torch.ops.aten._upsample_lanczos2d_aa
        # Weights are fractions of coordinates, whose rounding they keep: some 16 eps of it.
        bounds = {torch.float32: 3e-5, torch.float64: 1e-13}
        for small, large in SIZES:
            for align in (False, True):
                # With equal sizes the CPU's gradient follows the scale, its result does not. Where
                # a smaller scale puts windows outside of the image, the CPU reads memory that
                # nobody wrote.
                stretched = tuple(1.25 * there / here for here, there in zip(small, large))
                for scales in ((None, None), stretched)[: 1 + (small[0] != large[0])]:
                    for dtype, bound in bounds.items():
                        image = torch.rand(2, 3, *small, dtype=dtype, generator=generator)
                        grad = torch.rand(2, 3, *large, dtype=dtype, generator=generator)
                        results = []
                        for device in ("cpu", "ocl"):
                            x = image.to(device).detach().clone().requires_grad_()
                            y = resample(x, large, align, *scales)
                            y.backward(grad.to(device))
                            results.append((y.detach().cpu(), x.grad.cpu()))
                        with self.subTest(small=small, large=large, align=align, dtype=dtype):
                            for ours, theirs in zip(*reversed(results), strict=True):
                                torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound)

    def test_windows_outside_of_the_image(self) -> None:
        """A scale that is not that of the sizes: rows from the fifth on see nothing, and are 0."""
        resample = torch.ops.aten._upsample_lanczos2d_aa
        image = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(4))
        arguments = (13, 5), False, 0.5, 1.0
        ours, theirs = (resample(image.to(d), *arguments).cpu() for d in ("ocl", "cpu"))
        torch.testing.assert_close(ours[..., :5, :], theirs[..., :5, :], rtol=3e-5, atol=3e-5)
        self.assertEqual(ours[..., 5:, :].abs().max().item(), 0)

    def test_interpolate(self) -> None:
        image = torch.rand(1, 2, 12, 10)
        for arguments in ({"size": (5, 6)}, {"scale_factor": 1.5}, {"scale_factor": 0.4}):
            ours, theirs = (
                torch.nn.functional.interpolate(
                    image.to(device), mode="lanczos", antialias=True, **arguments
                ).cpu()
                for device in ("ocl", "cpu")
            )
            torch.testing.assert_close(ours, theirs, rtol=3e-5, atol=3e-5)
        strided = image.to("ocl").to(memory_format=torch.channels_last)
        resized = torch.ops.aten._upsample_lanczos2d_aa(strided, (5, 6), False)
        wanted = torch.ops.aten._upsample_lanczos2d_aa(image, (5, 6), False)
        torch.testing.assert_close(resized.cpu(), wanted, rtol=3e-5, atol=3e-5)


if __name__ == "__main__":
    unittest.main()
