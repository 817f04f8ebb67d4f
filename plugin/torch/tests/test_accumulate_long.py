"""index_add, index_put and embedding's gradient from so many sources that GPUs sort keys in several
tiles first."""

import itertools
import os
import unittest

# Indices outside are dropped here on purpose, not reported.
os.environ["OCLTENSOR_CHECK_VALUES"] = "0"

import torch  # noqa: E402
import torch_ocl  # noqa: E402, F401
from gpu_style import InGpuStyle  # noqa: E402

# Targets on both sides of a digit's end and of the number of digits; the longest sequence has
# several tiles of keys.
TARGETS = (1, 2, 127, 128, 255, 256, 257, 65535, 65536, 70000)
LENGTHS = (300, 9000)


def drawn(targets: int, length: int, outside: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices, and which of them lie in the target; the others are below, just behind, and far
    behind it."""
    index = torch.randint(0, targets, (length,))
    if not outside:
        return index, torch.ones(length, dtype=torch.bool)
    places = torch.tensor([-1, -targets, targets, targets + 1, 2**40, -(2**63), 2**63 - 1])
    there = torch.rand(length) < 0.7
    return torch.where(there, index, places[torch.randint(len(places), (length,))]), there


class LongAccumulation(InGpuStyle, unittest.TestCase):
    """Whole numbers, whose sums are exact in any order."""

    def setUp(self) -> None:
        torch.manual_seed(3)

    def test_index_add(self) -> None:
        for targets, length, outside in itertools.product(TARGETS, LENGTHS, (False, True)):
            with self.subTest(targets=targets, length=length, outside=outside):
                start, source = (
                    torch.randint(1, 9, (targets, 3)).float(),
                    torch.randint(1, 9, (length, 3)).float(),
                )
                index, there = drawn(targets, length, outside)
                expected = start.index_add(0, index[there], source[there], alpha=2)
                got = start.to("ocl").index_add(0, index.to("ocl"), source.to("ocl"), alpha=2)
                self.assertTrue(torch.equal(got.cpu(), expected))

    def test_index_put(self) -> None:
        for targets, length in itertools.product((2, 256, 300), LENGTHS):
            with self.subTest(targets=targets, length=length):
                start, values = torch.randint(1, 9, (targets, 300)), torch.randint(1, 9, (length,))
                at = torch.randint(-targets, targets, (length,)), torch.randint(0, 300, (length,))
                expected = start.index_put(at, values, accumulate=True)
                got = start.to("ocl").index_put(
                    tuple(i.to("ocl") for i in at), values.to("ocl"), accumulate=True
                )
                self.assertTrue(torch.equal(got.cpu(), expected))

    def test_embedding(self) -> None:
        for rows, length, by_frequency, outside in itertools.product(
            (3, 256, 70000), LENGTHS, *[(False, True)] * 2
        ):
            with self.subTest(rows=rows, length=length, by_frequency=by_frequency, outside=outside):
                gradient = torch.randint(1, 9, (length, 5)).float()
                index, there = drawn(rows, length, outside)
                call = torch.ops.aten.embedding_dense_backward
                expected = call(
                    gradient[there].double(), index[there], rows, 1, by_frequency
                ).float()
                got = call(gradient.to("ocl"), index.to("ocl"), rows, 1, by_frequency)
                torch.testing.assert_close(
                    got.cpu(), expected, rtol=1.2e-7, atol=0
                )  # the mean's one division


if __name__ == "__main__":
    unittest.main()
