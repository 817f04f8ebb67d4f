"""Attention of GPUs without matrix units, by tiles of scores in registers: results beside float64,
for random sizes, layouts, masks and dropout, and which problems are left to others."""

import os
import random
import unittest

os.environ["OCLTENSOR_KERNEL_STYLE"] = "gpu"
os.environ["OCLTENSOR_DISABLED_PROVIDERS"] = "nvidia_hopper,nvidia_mma"

import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401
from attention_case import check_rows_of_a_low_number  # noqa: E402
from torch.backends import ocl  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention as attention  # noqa: E402

# Sums of up to 300 products in float, relative to the largest element, and one rounding of 16-bit
# results; a wrong key, row, head or mask changes elements by tenths.
LIMITS = {torch.float32: 4e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
CASES = 8


def draw(rng: random.Random, dtype: torch.dtype):
    """Operands [batch, length, heads, size] or in rows, and options."""
    groups, key_heads = rng.choice((1, 1, 3)), rng.randint(1, 3)
    queries, keys = rng.randint(32, 200), rng.randint(1, 300)
    depth, width = 4 * rng.randint(1, 33), 4 * rng.randint(5, 32)
    batch, across = rng.randint(1, 2), rng.random() < 0.5
    heads = groups * key_heads
    tensors = []
    for n, h, c in ((queries, heads, depth), (keys, key_heads, depth), (keys, key_heads, width)):
        shape = (batch, n, h, c) if across else (batch, h, n, c)
        x = torch.randn(shape, dtype=torch.float64).to(dtype)
        tensors.append(x.transpose(1, 2) if across else x)
    options = {"is_causal": rng.random() < 0.4, "enable_gqa": groups > 1}
    if rng.random() < 0.5 and not options["is_causal"] and width <= 64:
        shape = rng.choice(((queries, keys), (batch, 1, 1, keys), (1, heads, queries, keys)))
        options["attn_mask"] = (
            torch.rand(shape) > 0.3 if rng.random() < 0.5 else torch.randn(shape).to(dtype)
        )
    options["dropout_p"] = rng.choice((0.0, 0.0, 0.3))
    if width > 64:
        options["is_causal"] = "attn_mask" not in options
    return tensors, options


def solve(tensors, options, device: str, dtype: torch.dtype) -> torch.Tensor:
    def there(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.to(device) if x.dtype == torch.bool else x.to(device, dtype)

    torch.manual_seed(4)
    out = attention(*map(there, tensors), **{k: there(v) for k, v in options.items()})
    return out.cpu().double()


@unittest.skipIf(
    torch.ocl.get_device_properties().platform == "rusticl", "keeps no tiles in registers"
)
class AttentionTiles(unittest.TestCase):
    def test_agree_with_float64(self) -> None:
        rng = random.Random(0)
        for dtype, limit in LIMITS.items():
            for case in range(CASES):
                torch.manual_seed(case)
                tensors, options = draw(rng, dtype)
                sizes = [tuple(t.shape) for t in tensors]
                with self.subTest(dtype=dtype, sizes=sizes, options=list(options)):
                    got = solve(tensors, options, "ocl", dtype)
                    self.assertEqual(
                        ocl.last_choices()["attention_forward"], "attention_forward.tiles"
                    )
                    # Blocks of scores in float64 drop the same weights.
                    device = "ocl" if options["dropout_p"] else "cpu"
                    want = solve(tensors, options, device, torch.float64)
                    error = (got - want).abs().max() / want.abs().max()
                    self.assertLess(error.item(), limit)

    def test_rows_without_keys_and_special_values(self) -> None:
        query, key, value = (torch.randn(1, 2, 70, 32) for _ in range(3))
        mask = torch.ones(70, 70, dtype=torch.bool)
        mask[3] = False  # sees nothing: zeros
        key[0, 0, 5, 0] = torch.inf
        query[0, 1, 40, 2] = torch.nan
        got, want = (
            attention(*(t.to(d) for t in (query, key, value)), attn_mask=mask.to(d)).cpu()
            for d in ("ocl", "cpu")
        )
        torch.testing.assert_close(got, want, equal_nan=True)
        self.assertEqual(got[:, 1, 3].abs().max().item(), 0)

    def test_rows_of_a_low_number(self) -> None:
        check_rows_of_a_low_number(self, torch.float32, LIMITS[torch.float32])
        self.assertEqual(ocl.last_choices()["attention_forward"], "attention_forward.tiles")
        check_rows_of_a_low_number(self, torch.bfloat16, LIMITS[torch.bfloat16])

    def test_log_sum_exp(self) -> None:
        query, key = torch.randn(1, 2, 50, 24), torch.randn(1, 2, 90, 24)
        forward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
        sums = forward(query.to("ocl"), key.to("ocl"), key.to("ocl"))[1].cpu()
        scores = query.double() @ key.double().transpose(2, 3) / 24**0.5
        torch.testing.assert_close(
            sums.double(), scores.logsumexp(3), rtol=2e-6, atol=2e-6, check_dtype=False
        )

    def test_choice(self) -> None:
        for shape, chosen in (
            ((1, 1, 64, 64), "tiles"),
            ((1, 1, 31, 64), "blocks"),  # too few queries
            ((1, 1, 64, 16), "blocks"),  # narrow heads
            ((1, 1, 64, 128), "blocks"),  # wide ones
        ):
            x = torch.randn(shape, device="ocl")
            attention(x, x, x)
            self.assertEqual(ocl.last_choices()["attention_forward"], f"attention_forward.{chosen}")
        attention(x, x, x, is_causal=True)
        self.assertEqual(ocl.last_choices()["attention_forward"], "attention_forward.tiles")


if __name__ == "__main__":
    unittest.main()
