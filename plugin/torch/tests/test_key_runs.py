"""Sums and other reductions over long runs of equal keys: every reduction, type and spread of keys,
by both algorithms."""

import itertools
import os
import unittest

DISABLED = "OCLTENSOR_DISABLED_ALGORITHMS"
# Where nothing is disabled, the number of processors decides; here runs are cut into chunks
# wherever that can be.
os.environ.setdefault(DISABLED, "accumulate.sequence")

import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401
from gpu_style import InGpuStyle, run_again  # noqa: E402

LENGTH, TARGETS = (
    30011,
    700,
)  # three levels of chunks on GPUs, two on CPU drivers; the last chunk is not full


def keys(spread: str) -> torch.Tensor:
    if spread == "one":
        return torch.full((LENGTH,), 5)
    if spread == "two":
        return torch.randint(0, 2, (LENGTH,)) * 600
    if spread == "halves":  # runs that end with a chunk, and begin in the middle of one
        return torch.arange(LENGTH) // 1024 * 3
    return torch.randint(0, TARGETS, (LENGTH,))


SPREADS = ("one", "two", "halves", "any")


class KeyRuns(InGpuStyle, unittest.TestCase):
    """Whole numbers, whose sums and products are exact in any order, unless said otherwise."""

    def setUp(self) -> None:
        torch.manual_seed(7)

    def check(self, call, *tensors: torch.Tensor, exact: bool = True) -> None:
        expected, got = call(*tensors), call(*(t.to("ocl") for t in tensors)).cpu()
        torch.testing.assert_close(
            got, expected, equal_nan=True, **({"rtol": 0, "atol": 0} if exact else {})
        )

    @unittest.skipIf(os.environ[DISABLED] == "accumulate.runs_*", "is that algorithm already")
    def test_one_after_another(self) -> None:
        run_again(self, **{DISABLED: "accumulate.runs_*"})

    def test_the_algorithm(self) -> None:
        torch.zeros(9, device="ocl").index_add(
            0, torch.zeros(9999, dtype=torch.int64, device="ocl"), torch.ones(9999, device="ocl")
        )
        used = torch.backends.ocl.last_choices()["accumulate"]
        expected = {
            "accumulate.sequence": ("accumulate.runs_cpu", "accumulate.runs_gpu"),
            "accumulate.runs_*": ("accumulate.sequence",),
        }
        self.assertIn(used, expected[os.environ[DISABLED]])

    def test_index_add(self) -> None:
        widths = (
            (torch.float32, 12),
            (torch.float32, 5),
            (torch.float32, 40),
            (torch.int8, 16),
            (torch.complex64, 3),
        )
        for spread, (dtype, width) in itertools.product(SPREADS, widths):
            with self.subTest(spread=spread, dtype=dtype, width=width):
                start, source = (
                    torch.randint(-4, 5, (n, width)).to(dtype) for n in (TARGETS, LENGTH)
                )
                self.check(
                    lambda a, i, b: a.index_add(0, i, b, alpha=3), start, keys(spread), source
                )

    def test_index_add_of_groups_that_share_keys(self) -> None:
        for spread in SPREADS:
            with self.subTest(spread=spread):
                start, source = (torch.randint(-4, 5, (3, n, 4)).float() for n in (TARGETS, LENGTH))
                self.check(lambda a, i, b: a.index_add(1, i, b), start, keys(spread), source)

    def test_scatter_reduce(self) -> None:
        modes = [(r, True) for r in ("sum", "prod", "mean", "amax", "amin")] + [
            ("mean", False),
            ("amin", False),
        ]
        for (reduction, include_self), spread in itertools.product(modes, ("one", "two", "any")):
            with self.subTest(reduction=reduction, include_self=include_self, spread=spread):
                start, source = (torch.randint(-9, 10, (n,)).float() for n in (TARGETS, LENGTH * 3))
                if reduction == "prod":  # signs, and so few twos that nothing overflows
                    start, source = (t.sign() + (t == 0) for t in (start, source))
                    source[::9001] *= 2
                self.check(
                    lambda a, i, b, r=reduction, s=include_self: a.scatter_reduce(
                        0, i, b, r, include_self=s
                    ),
                    start,
                    keys(spread).repeat(3),
                    source,
                    exact=reduction != "mean",
                )

    def test_integers_and_halves(self) -> None:
        pairs = (
            (torch.int64, "mean"),
            (torch.uint8, "sum"),
            (torch.float16, "sum"),
            (torch.bfloat16, "sum"),
        )
        for dtype, reduction in pairs:
            with self.subTest(dtype=dtype, reduction=reduction):
                start, source = torch.randint(0, 9, (TARGETS,)), torch.randint(0, 5, (LENGTH * 3,))
                index = keys("two").repeat(3)
                expected = start.scatter_reduce(0, index, source, reduction).to(dtype)
                got = (
                    start.to(dtype)
                    .to("ocl")
                    .scatter_reduce(0, index.to("ocl"), source.to(dtype).to("ocl"), reduction)
                )
                torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0)

    def test_infinite_and_nan(self) -> None:
        for reduction in ("sum", "prod", "amax", "amin"):
            with self.subTest(reduction=reduction):
                source = torch.ones(LENGTH * 3)
                index = torch.arange(LENGTH * 3) // (LENGTH // 2)  # six runs and a bit
                for run, values in enumerate(
                    ([torch.inf], [-torch.inf], [torch.inf, -torch.inf], [torch.nan], [-0.0])
                ):
                    for k, value in enumerate(values):
                        source[run * (LENGTH // 2) + 7000 * k + 3001] = value
                start = torch.ones(TARGETS)
                self.check(
                    lambda a, i, b, r=reduction: a.scatter_reduce(0, i, b, r), start, index, source
                )

    def test_embedding(self) -> None:
        for spread, by_frequency in itertools.product(("one", "two", "any"), (False, True)):
            with self.subTest(spread=spread, by_frequency=by_frequency):
                gradient, index = torch.randint(-4, 5, (LENGTH, 8)).float(), keys(spread)
                call = torch.ops.aten.embedding_dense_backward
                self.check(
                    lambda g, i, f=by_frequency: call(g, i, TARGETS, 9, f),
                    gradient,
                    index,
                    exact=not by_frequency,
                )

    def test_last_of_equal_indices(self) -> None:
        source = torch.arange(LENGTH * 3)
        for spread in ("one", "two"):
            index = keys(spread).repeat(3)
            got = torch.zeros(TARGETS, dtype=torch.int64, device="ocl").scatter(
                0, index.to("ocl"), source.to("ocl")
            )
            expected = torch.zeros(TARGETS, dtype=torch.int64).scatter_reduce(
                0, index, source, "amax"
            )
            self.assertTrue(torch.equal(got.cpu(), expected))

    def test_the_same_every_time(self) -> None:
        start, index, source = torch.randn(TARGETS, 8), keys("two"), torch.randn(LENGTH, 8)
        here = [t.to("ocl") for t in (start, index, source)]
        first, again = (here[0].index_add(0, *here[1:]).cpu() for _ in range(2))
        self.assertTrue(torch.equal(first, again))
        expected = start.double().index_add(0, index, source.double())
        # Of chunks of at most 1024 terms, and of sums of chunks: far below a running sum's error.
        torch.testing.assert_close(
            first.double(),
            expected,
            rtol=0,
            atol=1024 * 2**-24 * source.abs().sum(0).max().item() / 64,
        )


if __name__ == "__main__":
    unittest.main()
