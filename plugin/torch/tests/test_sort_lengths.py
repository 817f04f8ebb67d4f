"""sort and topk against PyTorch's CPU at the lengths where kernels change, as the device is and
with GPU-style kernels."""

import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import InGpuStyle

LENGTHS = [1, 2, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 50257]
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
]
SPECIAL = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, -float("nan"), 1e-40])


def drawn(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Numbers with ties, and with everything that has a place of its own in ATen's order."""
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        x = torch.randint(limits.min, limits.max, shape, dtype=dtype)
        return torch.where(torch.rand(shape) < 0.3, x % 7, x)
    x = torch.randn(shape).to(dtype)
    x = torch.where(torch.rand(shape) < 0.3, (x * 3).round(), x)
    chosen = SPECIAL.to(dtype)[torch.randint(len(SPECIAL), shape)]
    return torch.where(torch.rand(shape) < 0.1, chosen, x)


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    )


class Sorting(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def setUp(self) -> None:
        torch.manual_seed(11)

    def check(self, x: torch.Tensor, dim: int, descending: bool, kept: int | None = None) -> None:
        """Stable, so that positions have to be the same; topk takes the first of a stable order,
        too."""
        expected, positions = torch.sort(x, dim=dim, descending=descending, stable=True)
        there = x.to("ocl")
        if kept is None:
            result, found = torch.sort(there, dim=dim, descending=descending, stable=True)
        else:
            expected, positions = expected.narrow(dim, 0, kept), positions.narrow(dim, 0, kept)
            result, found = torch.topk(there, kept, dim=dim, largest=descending)
        with self.subTest(
            shape=tuple(x.shape), dim=dim, dtype=x.dtype, descending=descending, kept=kept
        ):
            self.assertTrue(torch.equal(found.cpu(), positions))
            self.assertTrue(torch.equal(bits(result.cpu()), bits(expected.contiguous())))

    def test_lengths(self) -> None:
        for n in LENGTHS:
            rows = 3 if n > 2048 else 9000 // n + 1
            for descending in (False, True):
                self.check(drawn(torch.float32, rows, n), 1, descending)
            self.check(drawn(torch.float32, n), 0, False)
        self.check(drawn(torch.float32, 0, 5), 1, False)
        self.check(drawn(torch.float32, 5, 0), 1, False)

    def test_dtypes(self) -> None:
        doubles = [torch.float64] if torch.ocl.get_device_properties().has_fp64 else []
        for dtype in DTYPES + doubles:
            self.check(drawn(dtype, 40, 129), 1, True)
            self.check(drawn(dtype, 2, 9001), 1, False)
        self.check(drawn(torch.int64, 6000) % 300, 0, False)  # all but two digits are the same
        self.check(torch.full((2, 9000), 7), 1, False)
        self.check(torch.full((2, 900), 7), 1, True)

    def test_strides(self) -> None:
        x = drawn(torch.float32, 70, 130)
        self.check(x.t(), 1, False)
        self.check(x, 0, True)
        self.check(x[3:, 1::2], 1, False)
        self.check(x[:1].expand(20, 130), 1, False)
        self.check(drawn(torch.float32, 4, 5000, 3)[1:, 7:], 1, True)

    def test_topk(self) -> None:
        for n in LENGTHS:
            x = drawn(torch.float32, 3, n)
            for kept in sorted(
                {k for k in (0, 1, 5, 50, 512, 600, 1024, 1025, n // 2, n) if k <= n}
            ):
                self.check(x, 1, kept % 2 == 0, kept)
        for dtype in DTYPES[1:]:  # ATen's CPU has none of bool
            self.check(drawn(dtype, 2, 9001), 1, True, 33)
            self.check(drawn(dtype, 5, 2000), 1, False, 33)
        self.check(torch.zeros(2, 9001), 1, True, 40)
        self.check(drawn(torch.float32, 300000), 0, True, 100)

    def test_order_of_keys(self) -> None:
        """What sorts on its way: sums by index and permutations."""
        index = torch.randint(300, (20000,))
        ones = torch.ones(20000)
        expected = torch.zeros(300).index_add_(0, index, ones)
        result = torch.zeros(300, device="ocl").index_add_(0, index.to("ocl"), ones.to("ocl"))
        self.assertTrue(torch.equal(result.cpu(), expected))
        order = torch.randperm(10000, device="ocl").cpu()
        self.assertTrue(torch.equal(order.sort()[0], torch.arange(10000)))
        self.assertFalse(torch.equal(order, torch.arange(10000)))


if __name__ == "__main__":
    unittest.main()
