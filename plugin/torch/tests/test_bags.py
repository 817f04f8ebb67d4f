"""Bags of embeddings in 16 bits: how often they are rounded."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed


class Bags(unittest.TestCase):
    def test_of_16_bits_are_rounded_once(self) -> None:
        """Half a unit in the last place of what float64 sums, and some 2^-24 of the terms, all
        positive, which are added in float."""
        torch.manual_seed(5)
        for dtype, mode in itertools.product((torch.float16, torch.bfloat16), ("sum", "mean")):
            with self.subTest(dtype=dtype, mode=mode):
                weight = torch.rand(40, 7).to(dtype)
                indices = torch.randint(0, 40, (100, 3))
                scales = torch.rand(100, 3).to(dtype) if mode == "sum" else None
                bag = torch.nn.functional.embedding_bag
                truth = bag(
                    indices,
                    weight.double(),
                    mode=mode,
                    per_sample_weights=None if scales is None else scales.double(),
                )
                ours = bag(
                    indices.to("ocl"),
                    weight.to("ocl"),
                    mode=mode,
                    per_sample_weights=None if scales is None else scales.to("ocl"),
                )
                unit = torch.finfo(dtype).eps
                torch.testing.assert_close(
                    ours.cpu().double(), truth, rtol=unit / 2 + 3 * 2**-24, atol=0
                )

    def test_gradients_of_scales(self) -> None:
        torch.manual_seed(6)
        weight = torch.randn(40, 300).half()
        indices = torch.randint(0, 40, (6, 5))
        scales = torch.rand(6, 5).half()
        gradients = []
        for device, dtype in (("cpu", torch.float64), ("ocl", torch.float16)):
            leaf = scales.to(device, dtype).requires_grad_()
            torch.nn.functional.embedding_bag(
                indices.to(device), weight.to(device, dtype), mode="sum", per_sample_weights=leaf
            ).sum().backward()
            gradients.append(leaf.grad.cpu().double())
        # Sums of 300 numbers below 5 in float, rounded once to 11 bits.
        torch.testing.assert_close(gradients[1], gradients[0], rtol=2**-11, atol=3e-4)


if __name__ == "__main__":
    unittest.main()
