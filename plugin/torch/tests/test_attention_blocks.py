"""Fused attention whose scores are too many for one block: heads and queries in parts, again in the
style of GPUs."""

import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle
from torch.backends import ocl
from torch.nn.functional import scaled_dot_product_attention as attention

# Relative to the largest element, for sums of up to 16500 weights: PyTorch's own CPU kernel needs
# 3.8e-6 to 4.8e-6 with that many keys and other seeds, blocks of scores 1e-6, the flash kernels of
# CPU drivers 4.7e-6.
LIMIT = 1e-5
# (batch, heads, key heads, queries, keys, depth), causal, mask. Blocks of scores have 96 MiB where
# a device has 24 GiB.
CASES = [
    ((2, 6, 6, 600, 8192, 8), True, False),
    ((1, 9, 3, 700, 9000, 8), False, True),
    ((1, 2, 2, 90, 16500, 8), False, False),  # rows that do not fit into registers
]
if torch.ocl.get_device_properties().total_memory > 64 << 30:
    CASES.append(
        ((1, 41, 41, 520, 8192, 8), True, False)
    )  # two blocks of heads there, too, of 21 and 20


def has_matrix_units():
    """Whether 16-bit attention runs on them."""
    attention(*(torch.randn(1, 1, 8, 8, dtype=torch.float16, device="ocl") for _ in range(3)))
    return ocl.last_choices()["attention_forward"] == "attention_forward.hopper"


def ours_and_expected(call, *tensors):
    """What call(*tensors[:-1]) gives, and its gradients for tensors[-1]: float32 on ocl, and
    float64 on the CPU."""
    results = []
    for device, dtype in (("ocl", torch.float32), ("cpu", torch.float64)):
        leaves = [t.detach().to(device, dtype).requires_grad_() for t in tensors[:-1]]
        out = call(*leaves)
        gradients = torch.autograd.grad(out, leaves, tensors[-1].to(device, dtype))
        results.append([t.detach().cpu().double() for t in (out, *gradients)])
    return results


class Blocks(InGpuStyle, unittest.TestCase):
    def test_agree_with_float64(self) -> None:
        torch.manual_seed(0)
        for (batch, heads, key_heads, queries, keys, depth), causal, masked in CASES:
            with self.subTest(heads=heads, keys=keys, causal=causal, masked=masked):
                sizes = [(heads, queries), (key_heads, keys), (key_heads, keys), (heads, queries)]
                tensors = [torch.randn(batch, h, n, depth, dtype=torch.float64) for h, n in sizes]
                mask = torch.rand(heads, queries, keys) > 0.3 if masked else None

                def call(query, key, value, mask=mask, causal=causal):
                    mask = None if mask is None else mask.to(query.device)
                    grouped = query.shape[1] != key.shape[1]
                    return attention(
                        query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=grouped
                    )

                for actual, expected in zip(*ours_and_expected(call, *tensors), strict=True):
                    worst = (actual - expected).abs().max() / expected.abs().max()
                    self.assertLess(worst.item(), LIMIT)
                chosen = ocl.last_choices()["attention_forward"]
                if has_matrix_units():
                    self.assertEqual(chosen, "attention_forward.hopper_bf16x6")

    def test_operands_that_share_memory(self) -> None:
        torch.manual_seed(2)
        calls = (
            lambda x: attention(x[:-1], x[1:], x[1:]),
            lambda x: attention(x[:1, :1], x[:1, :1, :401], x[:1, :1, :401]),
            lambda x: attention(x, x, x, is_causal=True),
        )
        for heads, length in ((8, 420), (1, 2500)):
            x = torch.randn(3, heads, length, 16)
            for call in calls:
                grad = torch.randn(call(x).shape)
                for actual, expected in zip(*ours_and_expected(call, x, grad), strict=True):
                    worst = (actual - expected).abs().max() / expected.abs().max()
                    self.assertLess(worst.item(), LIMIT)

    def test_masks_that_are_not_finite(self) -> None:
        torch.manual_seed(3)
        tensors = [torch.randn(2, 8, 400, 24) for _ in range(4)]
        for special in (float("nan"), float("inf"), -float("inf")):
            mask = torch.randn(400, 400)
            mask[7, 9] = special
            mask[20] = special

            def call(query, key, value, mask=mask):
                return attention(query, key, value, attn_mask=mask.to(query.device, query.dtype))

            for actual, expected in zip(*ours_and_expected(call, *tensors), strict=True):
                self.assertTrue(torch.equal(actual.isfinite(), expected.isfinite()))
                finite = expected.isfinite()
                if finite.any():
                    worst = (actual - expected)[finite].abs().max() / expected[finite].abs().max()
                    self.assertLess(worst.item(), LIMIT)

    def test_numbers_of_any_size(self) -> None:
        """On matrix units float32 is multiplied as three bfloat16, which not every number is the
        sum of."""
        torch.manual_seed(1)
        for special in (1e25, -3e-36, 1e-42, float("inf"), float("nan")):
            for place in range(4):
                with self.subTest(special=special, place=place):
                    tensors = [torch.randn(2, 8, 400, 24) for _ in range(4)]
                    tensors[place][1, 2, 100, 3] = special
                    results = ours_and_expected(attention, *tensors)
                    # Scores of 1e25 leave one weight, whose gradient is a difference of equal
                    # numbers: rounding, times 1e25.
                    kept = 1 if place < 2 and not abs(special) < 1 else 4
                    for actual, expected in zip(results[0][:kept], results[1][:kept], strict=True):
                        expected = expected.float().double()  # what is too large is infinite
                        finite = expected.isfinite()
                        self.assertTrue(torch.equal(actual.isfinite(), finite))
                        worst = (actual - expected)[finite].abs().max() / expected[
                            finite
                        ].abs().max()
                        self.assertLess(worst.item(), LIMIT)


if __name__ == "__main__":
    unittest.main()
