"""Attention of few queries over many keys, as of steps of a language model: results beside float64
for shared heads, masks, longer caches than what is seen; which problems are left to others."""

from __future__ import annotations

import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle
from torch.backends import ocl
from torch.nn.functional import scaled_dot_product_attention as attention

# Sums of up to 4096 products in float, relative to the largest element, and one rounding of 16-bit
# results; a wrong key, row, head or mask changes elements by tenths.
LIMITS = {torch.float32: 4e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
F32, F16, BF16 = LIMITS
# Batch, heads, key heads, queries, keys, depth, width.
SHAPES = (
    ((1, 8, 2, 1, 300, 64, 64), F32),
    ((2, 4, 4, 3, 130, 80, 48), BF16),
    ((1, 16, 2, 2, 1000, 128, 128), F16),
    ((1, 6, 2, 8, 177, 32, 96), F32),  # more rows than work-items take at once
    ((1, 3, 1, 5, 129, 16, 16), F32),
    ((1, 3, 1, 1, 65, 16, 16), F32),
    ((1, 8, 1, 1, 4096, 128, 128), BF16),
    ((1, 2, 1, 1, 500, 256, 256), F32),
)


def draw(shape: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    batch, heads, key_heads, queries, keys, depth, width = shape
    sizes = ((heads, queries, depth), (key_heads, keys, depth), (key_heads, keys, width))
    return [torch.randn(batch, *size).to(dtype) for size in sizes]


def want(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask=None) -> torch.Tensor:
    groups = q.shape[1] // k.shape[1]
    k, v = (t.double().repeat_interleave(groups, 1) for t in (k, v))
    scores = q.double() @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask.double()
    return scores.softmax(-1).nan_to_num(0) @ v


class Split(InGpuStyle, unittest.TestCase):
    def check(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, right: torch.Tensor, **more):
        got = attention(*(t.to("ocl") for t in (q, k, v)), enable_gqa=True, **more)
        self.assertEqual(ocl.last_choices()["attention_forward"], "attention_forward.split")
        error = (got.cpu().double() - right).abs().max() / right.abs().max()
        self.assertLess(error.item(), LIMITS[q.dtype])

    def test_shapes(self) -> None:
        torch.manual_seed(1)
        for shape, dtype in SHAPES:
            with self.subTest(shape, dtype=dtype):
                q, k, v = draw(shape, dtype)
                self.check(q, k, v, want(q, k, v))

    def test_masks(self) -> None:
        """Of all kinds, with rows that see nothing, and blocks of keys that no row sees."""
        torch.manual_seed(2)
        for shape, dtype in SHAPES[:4]:
            batch, heads, _, queries, keys, *_ = shape
            some = torch.rand(batch, 1, queries, keys) < 0.6
            some[:, :, 0] = queries == 1  # else nothing
            first = torch.zeros(1, 1, 1, keys, dtype=torch.bool)
            first[..., : keys // 5] = True
            numbers = 3 * torch.randn(batch, heads, queries, keys)
            numbers[0, 0, 0], numbers[0, 1, :, 5:] = -torch.inf, -torch.inf
            across = torch.rand(keys, queries).lt(0.5).t()
            for name, mask in {"some": some, "first": first, "numbers": numbers.to(dtype),
                               "columns": across}.items():  # fmt: skip
                with self.subTest(name, shape=shape):
                    q, k, v = draw(shape, dtype)
                    self.check(q, k, v, want(q, k, v, mask), attn_mask=mask.to("ocl"))
            with self.subTest("causal", shape=shape):
                mask = torch.ones(queries, keys, dtype=torch.bool).tril()
                self.check(q, k, v, want(q, k, v, mask), is_causal=True)

    def test_caches(self) -> None:
        """What a mask hides is not read into the result; keys of a longer cache, in its order."""
        torch.manual_seed(3)
        q, k, v = draw((1, 4, 2, 1, 700, 64, 64), F32)
        seen = torch.zeros(1, 1, 1, 700, dtype=torch.bool)
        seen[..., 130:190] = True  # as of a sliding cache
        k[:, :, 300:], v[:, :, 300:] = torch.nan, torch.inf
        self.check(q, k, v, want(q, k[:, :, :300], v[:, :, :300], seen[..., :300]),
                   attn_mask=seen.to("ocl"))  # fmt: skip
        there = [t.transpose(1, 2).contiguous().to("ocl").transpose(1, 2) for t in (q, k, v)]
        got = attention(there[0], there[1][:, :, :99], there[2][:, :, :99], enable_gqa=True)
        right = want(q, k[:, :, :99], v[:, :, :99])
        self.assertLess((got.cpu().double() - right).abs().max().item(), LIMITS[F32])

    def test_the_same_bits_and_sums(self) -> None:
        torch.manual_seed(4)
        q, k, v = (t.to("ocl") for t in draw((1, 4, 4, 2, 3000, 64, 64), F32))
        forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
        first = forward(q, k, v)
        for _ in range(3):
            self.assertTrue(torch.equal(forward(q, k, v)[0].cpu(), first[0].cpu()))
        scores = q.cpu().double() @ k.cpu().double().transpose(2, 3) / 8
        torch.testing.assert_close(
            first[1].cpu().double(), scores.logsumexp(3), rtol=2e-6, atol=2e-6
        )

    def test_infinite_values(self) -> None:
        """Of the last keys, which are not whole fours: no others are multiplied with 0."""
        torch.manual_seed(5)
        for keys in (128, 129, 130, 131):
            q, k, v = draw((1, 2, 2, 2, keys, 32, 32), F32)
            v[..., -1, 3], v[..., 4, 5] = torch.inf, -torch.inf
            got = attention(q.to("ocl"), k.to("ocl"), v.to("ocl")).cpu()
            self.assertEqual(ocl.last_choices()["attention_forward"], "attention_forward.split")
            torch.testing.assert_close(got, attention(q, k, v), rtol=1e-5, atol=1e-6)

    def test_choice(self) -> None:
        for queries, keys, width, options in (
            (9, 200, 64, {}),
            (1, 200, 18, {}),
            (1, 200, 64, {"dropout_p": 0.5}),
            (1, 63, 64, {}),
            (2, 127, 64, {}),
        ):
            query = torch.randn(1, 1, queries, width, device="ocl")
            key = torch.randn(1, 1, keys, width, device="ocl")
            attention(query, key, key, **options)
            self.assertNotEqual(ocl.last_choices()["attention_forward"], "attention_forward.split")


if __name__ == "__main__":
    unittest.main()
