"""Products of float8 factors with scales (_scaled_mm, scaled_mm) against float64: scales of a
tensor, of rows, of blocks; types of results, layouts, sizes, wrong calls."""

from __future__ import annotations

import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import IS_GPU_STYLE, THOROUGH, InGpuStyle, of_operators, of_style
from test_command_counts import commands
from torch.nn.functional import ScalingType, SwizzleType, scaled_mm

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
FACTORS = ((E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (torch.float8_e4m3fnuz, E5M2))
RESULTS = (torch.float32, torch.float16, torch.bfloat16)
# Rows, terms, columns: few rows read the second factor in place; sizes that nothing divides.
SIZES = ((1, 64, 48), (3, 147, 37), (17, 300, 130), (130, 130, 17))
EPS32 = torch.finfo(torch.float32).eps


def ceil(size: int) -> int:
    return -(-size // 128)


def repeated(scale: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """A scale for each element, of those of rows, columns or blocks."""
    for dim, size in enumerate((rows, columns)):
        if scale.shape[dim] not in (1, size):
            scale = scale.repeat_interleave(128, dim).narrow(dim, 0, size)
    return scale.double().expand(rows, columns)


def shapes(m: int, k: int, n: int) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    return {
        "whole": ((1, 1), (1, 1)),
        "rows": ((m, 1), (1, n)),
        "1x128, 128x128": ((m, ceil(k)), (ceil(k), ceil(n))),
        "1x128, 1x128": ((m, ceil(k)), (ceil(k), n)),
        "128x128, 1x128": ((ceil(m), ceil(k)), (ceil(k), n)),
    }


def swizzled(parts: torch.Tensor) -> torch.Tensor:
    """Element (r, c) in tile (r / 128, c / 4) at r % 32 * 16 + r / 32 % 4 * 4 + c % 4."""
    tall, wide = ceil(parts.shape[0]), -(-parts.shape[1] // 4)
    found = torch.zeros(tall * wide * 512, dtype=parts.dtype)
    for r in range(parts.shape[0]):
        for c in range(parts.shape[1]):
            tile = (r // 128) * wide + c // 4
            found[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = parts[r, c]
    return found


class ScaledProducts(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def near(self, got: torch.Tensor, a: torch.Tensor, b: torch.Tensor, bias=0) -> None:
        """Sums are rounded to the type, once; before, float32 rounds each product and sum."""
        want = a @ b + bias
        size = a.abs() @ b.abs() + (abs(bias) if isinstance(bias, torch.Tensor) else 0)
        eps = torch.finfo(got.dtype).eps
        bound = eps * want.abs() + 4 * EPS32 * size + torch.finfo(got.dtype).smallest_normal * eps
        off = (got.cpu().double() - want).abs() / bound
        self.assertLessEqual(off.max().item() if off.numel() else 0, 1)

    def test_products(self) -> None:
        torch.manual_seed(1)
        for types in FACTORS if THOROUGH or not IS_GPU_STYLE else FACTORS[:1]:
            for m, k, n in SIZES if THOROUGH or not IS_GPU_STYLE else SIZES[1:3]:
                for name, (of_a, of_b) in shapes(m, k, n).items():
                    with self.subTest(name, types=types, size=(m, k, n)):
                        a, b = torch.randn(m, k).to(types[0]), torch.randn(n, k).to(types[1]).t()
                        scale_a, scale_b = torch.rand(of_a) + 0.1, torch.rand(of_b) + 0.1
                        left = a.double() * repeated(scale_a, m, k)
                        right = b.double() * repeated(scale_b, k, n)
                        bias, there = (
                            torch.randn(n),
                            [t.to("ocl") for t in (a, b, scale_a, scale_b)],
                        )
                        for dtype in of_style(RESULTS):
                            given = bias.to(dtype)
                            got = torch._scaled_mm(*there, bias=given.to("ocl"), out_dtype=dtype)
                            self.assertEqual((got.device.type, got.dtype), ("ocl", dtype))
                            self.near(got, left, right, given.double())
                        got = torch._scaled_mm(*there, out_dtype=torch.float32)
                        self.near(got, left, right)

    def test_layouts(self) -> None:
        """Factors by rows and by columns, with gaps, from the middle of memory."""
        torch.manual_seed(2)
        for m in (2, 20):
            a, b = torch.randn(m, 96).to(E4M3), torch.randn(96, 40).to(E4M3)
            one = torch.tensor(1.5)
            for turn in (lambda t: t, lambda t: t.t().contiguous().t(),
                         lambda t: torch.nn.functional.pad(t.view(torch.uint8), (3, 2))
                         .view(E4M3)[:, 3:-2]):  # fmt: skip
                for other in (lambda t: t, lambda t: t.t().contiguous().t()):
                    x, y = turn(a.to("ocl")), other(b.to("ocl"))
                    got = torch._scaled_mm(
                        x, y, one.to("ocl"), one.to("ocl"), out_dtype=torch.float32
                    )
                    self.near(got, a.double() * 1.5, b.double() * 1.5)

    def test_special_numbers(self) -> None:
        """NaN and infinities are where float64 has them; large sums do not overflow float16."""
        one = torch.ones((), device="ocl")
        for m in (2, 12):
            a, b = torch.ones(m, 64).to(E5M2), torch.ones(32, 64).to(E5M2).t()
            a.view(torch.uint8)[0, 3], a.view(torch.uint8)[1, 5] = 0x7C, 0x7E  # infinity, NaN
            want = a.double() @ b.double()
            got = torch._scaled_mm(a.to("ocl"), b.to("ocl"), one, one, out_dtype=torch.float32)
            torch.testing.assert_close(got.cpu().double(), want, equal_nan=True)
            a = torch.full((m, 64), 448.0).to(E4M3)
            b = torch.full((32, 64), 448.0).to(E4M3).t()
            got = torch._scaled_mm(a.to("ocl"), b.to("ocl"), one, one, out_dtype=torch.float32)
            self.assertTrue((got == 448.0 * 448 * 64).all().item())

    @of_operators
    def test_empty(self) -> None:
        for m, k, n in ((0, 32, 16), (3, 0, 16), (3, 32, 0), (20, 0, 16)):
            with self.subTest(m=m, k=k, n=n):
                a = torch.zeros(m, k, device="ocl").to(E4M3)
                b = torch.zeros(n, k, device="ocl").to(E4M3).t()
                one, bias = torch.ones((), device="ocl"), torch.ones(n, device="ocl")
                got = torch._scaled_mm(a, b, one, one, bias=bias, out_dtype=torch.float32)
                self.assertTrue(torch.equal(got.cpu(), torch.ones(m, n)))

    @of_operators
    def test_float8_results_and_outs(self) -> None:
        torch.manual_seed(3)
        a, b = torch.randn(5, 64).to(E4M3), torch.randn(32, 64).to(E4M3).t()
        one = torch.tensor(0.25)
        there = [t.to("ocl") for t in (a, b, one, one)]
        want = torch._scaled_mm(a, b, one, one)
        got = torch._scaled_mm(*there)
        self.assertEqual(got.dtype, E4M3)
        # A number that lies between two may become either: float32 sums in another order.
        same = got.cpu().view(torch.uint8) == want.view(torch.uint8)
        self.assertGreater(same.double().mean().item(), 0.99)
        twice = torch._scaled_mm(*there, scale_result=torch.tensor(2.0, device="ocl"))
        ratio = twice.cpu().double() / got.cpu().double()
        self.assertLess((ratio - 2).abs().max().item(), 0.3)  # of four digits, rounded twice
        out = torch.empty(0, dtype=torch.bfloat16, device="ocl")
        torch._scaled_mm(*there, out_dtype=torch.bfloat16, out=out)
        self.near(out, a.double() * 0.25, b.double() * 0.25)
        torch._scaled_mm(*there, out=out)  # rounded to the result's type, not to float8 before
        self.near(out, a.double() * 0.25, b.double() * 0.25)
        with self.assertRaisesRegex(RuntimeError, "out_dtype must match output matrix type"):
            torch._scaled_mm(*there, out_dtype=torch.float32, out=out)

    @of_operators
    def test_newer_form(self) -> None:
        torch.manual_seed(4)
        a, b = torch.randn(4, 96).to(E4M3), torch.randn(24, 96).to(E4M3).t()
        x, y = a.to("ocl"), b.to("ocl")
        whole, rows = ScalingType.TensorWise, ScalingType.RowWise
        one = torch.tensor([0.5], device="ocl")
        got = scaled_mm(x, y, one, whole, one, whole, output_dtype=torch.bfloat16)
        self.near(got, a.double() / 2, b.double() / 2)
        left, right = torch.rand(4, 1), torch.rand(24, 1)
        got = scaled_mm(
            x, y, left.to("ocl"), rows, right.to("ocl"), rows, output_dtype=torch.float32
        )
        self.near(got, a.double() * left, b.double() * right.t())
        blocks = ScalingType.BlockWise1x16
        with self.assertRaisesRegex(NotImplementedError, "scales of tensors, of rows, and of"):
            scaled_mm(x, y, left.to("ocl"), blocks, right.to("ocl"), blocks)

    @of_operators
    def test_newer_form_with_blocks(self) -> None:
        """Scales of 128 as CUDA has them: of rows, or [K, M or N] padded to 4 along K."""
        torch.manual_seed(6)
        line, square = ScalingType.BlockWise1x128, ScalingType.BlockWise128x128
        for m, k, n in ((5, 256, 130), (140, 300, 17)):
            a, b = torch.randn(m, k).to(E4M3), torch.randn(n, k).to(E5M2).t()
            of_rows = {"a": torch.rand(m, ceil(k)) + 0.1, "b": torch.rand(n, ceil(k)) + 0.1}
            of_both = {"a": torch.rand(4, ceil(m)) + 0.1, "b": torch.rand(4, ceil(n)) + 0.1}
            for left, right in ((line, line), (line, square), (square, line)):
                with self.subTest(size=(m, k, n), left=left, right=right):
                    scale_a = of_rows["a"] if left == line else of_both["a"]
                    scale_b = of_rows["b"] if right == line else of_both["b"]
                    whole_a = scale_a if left == line else scale_a[: ceil(k)].t()
                    whole_b = scale_b.t() if right == line else scale_b[: ceil(k)]
                    got = scaled_mm(
                        a.to("ocl"), b.to("ocl"), scale_a.to("ocl"), left, scale_b.to("ocl"),
                        right, output_dtype=torch.float32,
                    )  # fmt: skip
                    self.near(got, a.double() * repeated(whole_a, m, k),
                              b.double() * repeated(whole_b, k, n))  # fmt: skip

    @of_operators
    def test_powers_of_two_for_32(self) -> None:
        """MX's scales, side by side or in the order of cuBLAS."""
        torch.manual_seed(7)
        mx, plain = ScalingType.BlockWise1x32, SwizzleType.NO_SWIZZLE
        for m, k, n in ((3, 96, 37), (130, 160, 20)):
            a, b = torch.randn(m, k).to(E4M3), torch.randn(n, k).to(E4M3).t()
            parts = [torch.randint(120, 132, (rows, k // 32)) for rows in (m, n)]
            left, right = ((2.0 ** (p.double() - 127)).repeat_interleave(32, 1) for p in parts)
            for swizzle in (plain, SwizzleType.SWIZZLE_32_4_4):
                with self.subTest(size=(m, k, n), swizzle=swizzle):
                    given = [p if swizzle == plain else swizzled(p) for p in parts]
                    x, y = (p.to(torch.uint8).to("ocl").view(torch.float8_e8m0fnu) for p in given)
                    got = scaled_mm(
                        a.to("ocl"), b.to("ocl"), x, mx, y, mx, swizzle, swizzle,
                        output_dtype=torch.float32,
                    )  # fmt: skip
                    self.near(got, a.double() * left, b.double() * right.t())
        with self.assertRaisesRegex(ValueError, "scale_a of blocks of 32 must have 12 elements"):
            scaled_mm(a[:3, :128].to("ocl"), b[:128].to("ocl"), y, mx, y, mx, plain, plain)
        x, y = (p.to(torch.uint8).to("ocl").view(torch.float8_e8m0fnu) for p in parts)
        with self.assertRaisesRegex(ValueError, r"scale_b of blocks of 32 must be \[20, 5\]"):
            scaled_mm(a.to("ocl"), b.to("ocl"), x, mx, y.t(), mx, plain, plain)

    def test_a_weight_is_read_in_place(self) -> None:
        """One row: the factor, its scale, the product, the result's type."""
        a = torch.randn(1, 256, device="ocl").to(E4M3)
        b = torch.randn(64, 256, device="ocl").to(E4M3).t()
        one = torch.ones((), device="ocl")
        run = lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)  # noqa: E731
        self.assertLessEqual(commands(run), 4)

    @of_operators
    def test_wrong(self) -> None:
        """As on the CPU, in the words of 2.13: before, it took other scales and types."""
        a, b = torch.ones(4, 32).to(E4M3), torch.ones(16, 32).to(E4M3).t()
        one, rows = torch.tensor(1.0), torch.ones(4, 1)
        for args, options in (
            ((a[0], b, one, one), {}),
            ((a, b[:30], one, one), {}),
            ((a, b, one.half(), one), {}),
            ((a.float(), b, one, one), {}),
            ((a, b, rows, torch.ones(1, 15)), {}),
            ((a, b, one, one), {"bias": torch.zeros(15), "out_dtype": torch.float32}),
        ):
            with self.subTest([tuple(t.shape) for t in args]):
                moved = {n: o.to("ocl") if n == "bias" else o for n, o in options.items()}
                with self.assertRaises((RuntimeError, ValueError)) as found:
                    torch._scaled_mm(*(t.to("ocl") for t in args), **moved)
                if torch.__version__ < (2, 13):
                    continue
                with self.assertRaises(type(found.exception)) as wanted:
                    torch._scaled_mm(*args, **options)
                first = str(wanted.exception).splitlines()[0]
                self.assertEqual(str(found.exception).splitlines()[0], first)
        with self.assertRaisesRegex(NotImplementedError, "results of Double"):
            torch._scaled_mm(*(t.to("ocl") for t in (a, b, one, one)), out_dtype=torch.float64)

    @of_operators
    def test_fake(self) -> None:
        """Shapes and types without numbers, and the compiler's trace."""
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode():
            a = torch.empty(4, 32, device="ocl", dtype=E4M3)
            b = torch.empty(16, 32, device="ocl", dtype=E4M3).t()
            one = torch.ones((), device="ocl")
            got = torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)
        self.assertEqual((got.shape, got.dtype, got.device.type), ((4, 16), torch.bfloat16, "ocl"))


if __name__ == "__main__":
    unittest.main()
