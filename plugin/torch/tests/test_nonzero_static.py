"""nonzero_static against torch's CPU: types, strides, sizes on both sides of what is found."""

from __future__ import annotations

import random
import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle

TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64)
TYPES += (torch.complex128, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64)


class NonzeroStatic(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def setUp(self) -> None:
        random.seed(12)
        torch.manual_seed(12)

    def test_every_type(self) -> None:
        for _ in range(80):
            sizes = [random.randint(1, 9) for _ in range(random.randint(1, 4))]
            dtype, is_turned = random.choice(TYPES), random.random() < 0.5
            mask = torch.rand(sizes) < random.choice((0.1, 0.5, 1))
            x = (torch.randint(1, 9, sizes) * mask).to(dtype)
            size = random.randint(0, 2 * x.numel() + 3)
            here = x.to("ocl")
            if is_turned:  # rows behind columns
                here = here.mT.contiguous().mT if x.dim() > 1 else torch.stack([here] * 2, 1)[:, 1]
            with self.subTest(sizes=sizes, dtype=dtype, is_turned=is_turned, size=size):
                want = torch.nonzero_static(x, size=size, fill_value=-7)
                got = torch.nonzero_static(here, size=size, fill_value=-7)
                self.assertTrue(torch.equal(got.cpu(), want))
                out = torch.full((len(sizes), size), 99, device="ocl").t()
                torch.nonzero_static(here, size=size, fill_value=5, out=out)
                want = torch.nonzero_static(x, size=size, fill_value=5)
                self.assertTrue(torch.equal(out.cpu(), want))

    def test_larger(self) -> None:
        for count, share in ((70000, 0.01), (300000, 0.5), (5000, 1.0), (4097, 0.0)):
            x = torch.rand(count) < share
            for size in (10, count // 3, count + 1000):
                want = torch.nonzero_static(x, size=size)
                got = torch.nonzero_static(x.to("ocl"), size=size)
                self.assertTrue(torch.equal(got.cpu(), want))

    def test_without_elements(self) -> None:
        for sizes in ([], [0], [3, 0]):
            x = torch.ones(sizes)
            for size in (0, 4):
                want = torch.nonzero_static(x, size=size, fill_value=3)
                got = torch.nonzero_static(x.to("ocl"), size=size, fill_value=3)
                self.assertEqual(got.shape, want.shape)
                self.assertTrue(torch.equal(got.cpu(), want))

    def test_launches(self) -> None:
        x = torch.rand(64, 64, device="ocl") < 0.3
        torch.nonzero_static(x, size=500)  # builds programs
        before = torch.ocl.counters()["launches"]
        torch.nonzero_static(x, size=500)
        self.assertEqual(torch.ocl.counters()["launches"] - before, 3)

    def test_wrong_calls(self) -> None:
        x = torch.ones(3, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "non-negative"):
            torch.nonzero_static(x, size=-1)
        with self.assertRaisesRegex(RuntimeError, "nonzero_static"):
            torch.nonzero_static(x, size=2, out=torch.empty(2, 1, device="ocl"))


if __name__ == "__main__":
    unittest.main()
