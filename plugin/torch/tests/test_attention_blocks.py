"""Fused attention whose scores are too many for one block: heads and queries in parts, again in the style of GPUs."""

import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle
from torch.nn.functional import scaled_dot_product_attention as attention

# Relative to the largest element, for sums of up to 16500 weights: PyTorch's own CPU kernel needs 3.8e-6 to 4.8e-6 with that many
# keys and other seeds, blocks of scores 1e-6, the flash kernels of CPU drivers 4.7e-6.
LIMIT = 1e-5
# (batch, heads, key heads, queries, keys, depth), causal, mask. Blocks of scores have 96 MiB where a device has 24 GiB.
CASES = [
    ((2, 6, 6, 600, 8192, 8), True, False),
    ((1, 9, 3, 700, 9000, 8), False, True),
    ((1, 2, 2, 90, 16500, 8), False, False),  # rows that do not fit into registers
]


class Blocks(InGpuStyle, unittest.TestCase):
    def test_agree_with_float64(self):
        torch.manual_seed(0)
        for (batch, heads, key_heads, queries, keys, depth), causal, masked in CASES:
            with self.subTest(heads=heads, keys=keys, causal=causal, masked=masked):
                sizes = [(heads, queries), (key_heads, keys), (key_heads, keys), (heads, queries)]
                tensors = [torch.randn(batch, h, n, depth, dtype=torch.float64) for h, n in sizes]
                mask = torch.rand(heads, queries, keys) > 0.3 if masked else None

                def run(device, dtype, tensors=tensors, mask=mask, causal=causal):
                    query, key, value, grad = (t.to(device, dtype).requires_grad_() for t in tensors)
                    mask = None if mask is None else mask.to(device)
                    grouped = query.shape[1] != key.shape[1]
                    out = attention(query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=grouped)
                    out.backward(grad)
                    return [t.detach().cpu().double() for t in (out, query.grad, key.grad, value.grad)]

                for actual, expected in zip(
                    run("ocl", torch.float32), run("cpu", torch.float64), strict=True
                ):
                    worst = (actual - expected).abs().max() / expected.abs().max()
                    self.assertLess(worst.item(), LIMIT)

    def test_numbers_of_any_size(self):
        """On matrix units float32 is multiplied as three bfloat16, which not every number is the sum of."""
        torch.manual_seed(1)
        for special in (1e25, -3e-36, 1e-42, float("inf"), float("nan")):
            for place in range(4):
                with self.subTest(special=special, place=place):
                    tensors = [torch.randn(2, 8, 400, 24) for _ in range(4)]
                    tensors[place][1, 2, 100, 3] = special
                    results = []
                    for device, dtype in (("ocl", torch.float32), ("cpu", torch.float64)):
                        query, key, value, grad = (t.to(device, dtype).requires_grad_() for t in tensors)
                        out = attention(query, key, value)
                        gradients = torch.autograd.grad(out, (query, key, value), grad)
                        results.append([t.detach().cpu().double() for t in (out, *gradients)])
                    # Scores of 1e25 leave one weight, whose gradient is a difference of equal numbers: rounding, times 1e25.
                    kept = 1 if place < 2 and not abs(special) < 1 else 4
                    for actual, expected in zip(results[0][:kept], results[1][:kept], strict=True):
                        expected = expected.float().double()  # what is too large is infinite
                        finite = expected.isfinite()
                        self.assertTrue(torch.equal(actual.isfinite(), finite))
                        worst = (actual - expected)[finite].abs().max() / expected[finite].abs().max()
                        self.assertLess(worst.item(), LIMIT)


if __name__ == "__main__":
    unittest.main()
