"""The ends of the distributions: kernels get every word that their transforms can tell apart
instead of random ones."""

import math
import os
import shutil
import tempfile
import unittest
from pathlib import Path

# Kernels are read from a copy in which word x of a call is x << 8 (transforms drop the low byte),
# then two words of ones and two of zeros, which together are also the ends of what float64 takes:
COUNTED = """
INLINE uint counted(ulong x) {
  return x < (1 << 24) ? (uint)x << 8 : (x & 2) == 0 ? 0xffffffffu : 0;
}
INLINE void words_of_block(ulong seed, ulong counter, uint *w) {
  for (int k = 0; k < 4; ++k) w[k] = counted(4 * (counter % 4194305) + k);
}
INLINE void words_of_blocks(ulong seed, ulong counter, uint *w) {
  for (int k = 0; k < 16; ++k) words_of_block(seed, counter + k, w + 4 * k);
}
"""
# its numbers have 53 bits, of two words.
KERNELS = Path(tempfile.mkdtemp(prefix="ocltensor-distributions-"))


def count_words() -> None:
    shutil.copytree(Path(__file__).parents[3] / "kernels", KERNELS, dirs_exist_ok=True)
    header = KERNELS / "include" / "philox.h"
    text = header.read_text()
    start = text.index("// The four words of block")
    header.write_text(text[:start] + COUNTED + "#endif\n")
    os.environ["OCLTENSOR_KERNEL_DIR"] = str(KERNELS)


count_words()
import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401

WORDS = (1 << 24) + 4
NARROW = (torch.float32, torch.float16, torch.bfloat16)
TYPES = (*NARROW, torch.float64)


def drawn(dtype: torch.dtype, draw) -> torch.Tensor:
    """All words for 24 bits; for float64 pairs of words, so that half as many numbers have all high
    words."""
    count = WORDS // 2 if dtype is torch.float64 else WORDS
    x = torch.full((count,), math.nan if dtype.is_floating_point else 0, dtype=dtype, device="ocl")
    torch.manual_seed(0)  # an offset of 0: the first word is word 0
    draw(x)
    return x


def radius(dtype: torch.dtype) -> float:
    """Box and Muller's largest, sqrt(-2 log u) of the smallest u, rounded to the type, after some
    ulps of arithmetic."""
    bits = 53 if dtype is torch.float64 else 24
    return math.sqrt(2 * bits * math.log(2)) * (
        1 + 8 * torch.finfo(torch.float32).eps + torch.finfo(dtype).eps
    )


class Distributions(unittest.TestCase):
    def setUp(self) -> None:
        if os.environ.get("OCLTENSOR_KERNEL_DIR") != str(KERNELS):
            self.skipTest("kernels are read from elsewhere")

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(KERNELS, ignore_errors=True)

    def check(self, draw, low: float, high: float, types=TYPES) -> None:
        for dtype in types:
            with self.subTest(dtype=dtype):
                x = drawn(dtype, draw)
                least, most = x.min().item(), x.max().item()  # NaN where there is one
                self.assertGreaterEqual(least, low)
                self.assertLessEqual(most, high)

    def test_the_words_are_all_there(self) -> None:
        x = drawn(torch.float32, lambda x: x.uniform_())
        expected = (
            torch.cat([torch.arange(1 << 24), torch.tensor([(1 << 24) - 1] * 2 + [0] * 2)])
            * 2.0**-24
        )
        self.assertTrue(torch.equal(x.cpu().double(), expected.double()))
        wide = drawn(torch.float64, lambda x: x.uniform_())
        self.assertEqual((wide[-2].item(), wide[-1].item()), (1 - 2.0**-53, 0))

    def test_uniform_excludes_its_end(self) -> None:
        for dtype in TYPES:
            below = torch.nextafter(
                torch.tensor(1, dtype=dtype), torch.tensor(0, dtype=dtype)
            ).item()
            self.check(lambda x: x.uniform_(), 0, below, (dtype,))
        for dtype, step in (
            (torch.float32, 2.0**-22),
            (torch.float64, 2.0**-51),
        ):  # sums that round up to the end
            self.check(lambda x, step=step: x.uniform_(2, 2 + step), 2, 2 + step / 2, (dtype,))

    def test_exponential_is_positive_and_finite(self) -> None:
        self.check(lambda x: x.exponential_(), 2.0**-53, 37)
        for dtype in TYPES:
            self.assertFalse(
                torch.signbit(drawn(dtype, lambda x: x.exponential_())).any().item(), dtype
            )

    def test_gumbel_noise_is_finite(self) -> None:
        x = drawn(torch.float32, lambda x: x.exponential_())
        noise = -x.log()
        self.assertTrue(noise.isfinite().all().item())
        torch.manual_seed(0)
        soft = torch.nn.functional.gumbel_softmax(torch.zeros(4, WORDS // 4, device="ocl"), dim=1)
        self.assertFalse(soft.isnan().any().item())

    def test_geometric_starts_at_one(self) -> None:
        # -log(2^-24) / -log1p(-p): the longest wait that 24 bits give.
        self.check(
            lambda x: x.geometric_(0.25),
            1,
            math.ceil(24 * math.log(2) / -math.log1p(-0.25)),
            NARROW,
        )
        self.check(
            lambda x: x.geometric_(0.25),
            1,
            math.ceil(53 * math.log(2) / -math.log1p(-0.25)),
            (torch.float64,),
        )
        self.check(lambda x: x.geometric_(0.25), 1, 58, (torch.int32, torch.uint8))

    def test_cauchy_is_finite_and_odd(self) -> None:
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            x = drawn(dtype, lambda x: x.cauchy_())
            self.assertTrue(x.isfinite().all().item(), dtype)
            # Word 0 is the far negative end, the word of ones the positive one.
            self.assertLess(x[-1].item(), -1e6)
            self.assertGreater(x[-3 if dtype is not torch.float64 else -2].item(), 1e6)
        # float16 ends at 65504: what lies beyond is infinite, as on the CPU, and of the right sign.
        x = drawn(torch.float16, lambda x: x.cauchy_())
        self.assertFalse(x.isnan().any().item())
        self.assertLess(x[-1].item(), -6e4)

    def test_normal_is_finite(self) -> None:
        for dtype in TYPES:
            self.check(lambda x: x.normal_(), -radius(dtype), radius(dtype), (dtype,))

    def test_log_normal_is_positive(self) -> None:
        for dtype in TYPES:
            self.check(
                lambda x: x.log_normal_(0, 1),
                math.exp(-radius(dtype)),
                math.exp(radius(dtype)),
                (dtype,),
            )

    def test_bernoulli_of_certainties(self) -> None:
        for dtype in (*TYPES, torch.uint8, torch.bool):
            self.assertEqual(drawn_sum(dtype, 0.0), 0, dtype)
            self.assertEqual(drawn_sum(dtype, 1.0), WORDS, dtype)
        for p, expected in ((0.0, 0), (1.0, WORDS)):
            torch.manual_seed(0)
            draws = torch.bernoulli(torch.full((WORDS,), p, device="ocl"))
            self.assertEqual(int(draws.sum().item()), expected)

    def test_dropout_of_certainties(self) -> None:
        x = torch.ones(WORDS, device="ocl")
        for p, kept in ((0.0, WORDS), (1.0, 0)):
            torch.manual_seed(0)
            self.assertEqual(int(torch.nn.functional.dropout(x, p).sum().item()), kept)

    def test_multinomial_never_draws_a_weight_of_zero(self) -> None:
        weights = torch.tensor([0, 0.25, 0, 0, 0.5, 0.25, 0])
        for dtype in TYPES:
            torch.manual_seed(0)
            draws = torch.multinomial(weights.to("ocl", dtype), WORDS, replacement=True).cpu()
            self.assertEqual(
                (draws.bincount(minlength=7) > 0).tolist(), (weights > 0).tolist(), dtype
            )
            torch.manual_seed(0)
            rows = weights.to("ocl", dtype).repeat(100_000, 1)
            draws = torch.multinomial(rows, 3, replacement=False).cpu()
            self.assertTrue(weights[draws].gt(0).all().item(), dtype)
            self.assertTrue(draws.sum(1).eq(10).all().item(), dtype)  # each category once


def drawn_sum(dtype: torch.dtype, p: float) -> int:
    x = torch.zeros(WORDS, dtype=dtype, device="ocl")
    torch.manual_seed(0)
    return int(x.bernoulli_(p).to(torch.int32).sum().item())


if __name__ == "__main__":
    unittest.main()
