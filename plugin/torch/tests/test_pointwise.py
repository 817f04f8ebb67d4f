"""Pointwise operators where vectors hold special values: no lane may disturb its neighbours."""

import itertools
import math
import threading
import unittest

import numpy
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def exact_fmod(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The C library's: PyTorch's own is NaN where a / b overflows."""
    with numpy.errstate(all="ignore"):
        return torch.from_numpy(numpy.fmod(a.double().numpy(), b.double().numpy())).to(a.dtype)


class RepeatedCalls(unittest.TestCase):
    """Calls that differ from an earlier one in a single respect. What was worked out for the
    earlier one is used again where that respect does not matter, and only there."""

    def same(self, call, *tensors: torch.Tensor) -> None:
        expected, result = call(*tensors), call(*(t.to("ocl") for t in tensors))
        self.assertEqual((result.dtype, result.stride()), (expected.dtype, expected.stride()))
        # A unit of float16, twice: its CPU kernels round products before sums.
        tolerance = 2e-3 if expected.dtype == torch.float16 else 1e-5
        torch.testing.assert_close(
            result.cpu(), expected, rtol=tolerance, atol=1e-6, equal_nan=True
        )

    def test_one_thing_changes(self) -> None:
        a, b, c = (torch.rand(6, 8) + 0.5 for _ in range(3))
        calls = (
            lambda x, y: x + y,
            lambda x, y: torch.add(x, y, alpha=2),
            lambda x, y: torch.add(x, y, alpha=2.5),
            lambda x, y: torch.add(x, y, alpha=-1),
            lambda x, y: x + x,
            lambda x, y: y - x,
            lambda x, y: x - 1.5,
            lambda x, y: x - 2,
            lambda x, y: 2 - x,
            lambda x, y: x**2,
            lambda x, y: x**3,
            lambda x, y: x < y,
            lambda x, y: x.clamp(max=0.9),
            lambda x, y: x.clamp(min=0.9),
            lambda x, y: torch.where(x > y, x, y),
            lambda x, y: torch.nn.functional.gelu(x),
            lambda x, y: torch.nn.functional.gelu(x, approximate="tanh"),
            lambda x, y: torch.lerp(x, y, 0.25),
            lambda x, y: torch.addcmul(x, y, y, value=0.5),
        )
        shapes = (
            lambda t: t,
            lambda t: t.flatten(),
            lambda t: t[:, 1:],
            lambda t: t.t(),
            lambda t: t.t().contiguous(),
            lambda t: t[:0],
            lambda t: t[0, 0],
            lambda t: t.flatten()[1:],
            lambda t: t[:1],
            lambda t: t[:, ::2],
        )
        for call in calls:
            for shape in shapes:
                self.same(call, shape(a), shape(b))
            self.same(call, a, c)
        for call in calls[:6]:
            for dtype in (torch.float64, torch.float16, torch.float32):
                self.same(call, a.to(dtype), b.to(dtype))
            self.same(call, a, b.double())
            self.same(call, a, b[0])
            self.same(call, a, b.t().contiguous().t())
            self.same(call, a, b[0, 0])

    def test_given_outputs(self) -> None:
        a, b = torch.rand(40), torch.rand(40)
        x, y = a.to("ocl"), b.to("ocl")
        for _ in range(3):
            torch.testing.assert_close(x.add_(y).cpu(), a.add_(b))
            torch.testing.assert_close(x.relu_().cpu(), a.relu_())
        for dtype, size in ((torch.float32, 40), (torch.float64, 40), (torch.float32, 0)):
            out = torch.empty(size, dtype=dtype, device="ocl")
            torch.add(x, y, out=out)
            torch.testing.assert_close(out.cpu(), (a + b).to(dtype))
        # Memory that is shared: the same places, places beside them, gaps.
        torch.add(x, y, out=y)
        torch.testing.assert_close(y.cpu(), a + b)
        with self.assertRaisesRegex(RuntimeError, "single memory location"):
            torch.add(x[1:], y[1:], out=x[:-1])
        strided = torch.zeros(80, device="ocl")[::2]
        torch.add(x, x, out=strided)
        torch.testing.assert_close(strided.cpu(), a + a)
        with self.assertRaisesRegex(RuntimeError, "can't be cast"):
            torch.add(x, y, out=torch.empty(40, dtype=torch.int32, device="ocl"))
        with self.assertRaisesRegex(RuntimeError, "doesn't match the broadcast shape"):
            x.add_(torch.ones(3, 40, device="ocl"))
        with self.assertRaisesRegex(RuntimeError, "negative integer power"):
            torch.ones(4, dtype=torch.int32, device="ocl") ** -1

    def test_streams_and_threads(self) -> None:
        wrong = []

        def work(seed: int) -> None:
            with torch.ocl.stream(torch.ocl.Stream()):
                for i in range(50):
                    x = torch.full((64,), float(seed), device="ocl")
                    if not ((x + x * 2 + i).cpu() == 3 * seed + i).all():
                        wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Fmod(unittest.TestCase):
    def check(self, a: torch.Tensor, b: torch.Tensor) -> None:
        expected = exact_fmod(a, b)
        result = torch.fmod(a.to("ocl"), b.to("ocl")).cpu()
        wrong = ~((result == expected) | (result.isnan() & expected.isnan()))
        wrong |= ~result.isnan() & (result.signbit() != expected.signbit())
        self.assertFalse(
            wrong.any(), f"{a[wrong][:4]} fmod {b[wrong][:4]} gave {result[wrong][:4]}"
        )
        expected = torch.where(
            (expected != 0) & ((b < 0) != (expected < 0)), expected + b, expected
        )
        result = torch.remainder(a.to("ocl"), b.to("ocl")).cpu()
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)

    def test_beside_special_values(self) -> None:
        for dtype in FLOATS:
            limits = torch.finfo(dtype)
            special = [
                math.inf,
                -math.inf,
                math.nan,
                0.0,
                -0.0,
                limits.tiny,
                limits.tiny / 4,
                limits.max,
                limits.min,
                1.0,
            ]
            for one, other in itertools.product([*special, 7.0], [*special, 4.0]):
                a, b = torch.full((40,), 7.0, dtype=dtype), torch.full((40,), 4.0, dtype=dtype)
                a[5], b[5] = one, other
                with self.subTest(dtype=dtype, a=one, b=other):
                    self.check(a, b)

    def test_any_quotient(self) -> None:
        generator = torch.Generator().manual_seed(3)
        for dtype, exponent in itertools.product(FLOATS, (0, 8, 30, 100, 600, -12)):
            wide = torch.randn(2000, dtype=torch.float64, generator=generator) * 2.0**exponent
            narrow = torch.randn(2000, dtype=torch.float64, generator=generator)
            with self.subTest(dtype=dtype, exponent=exponent):
                self.check(wide.to(dtype), narrow.to(dtype))
                self.check(wide.round().to(dtype), (narrow * 8).round().to(dtype))

    def test_floor_division(self) -> None:
        a = torch.tensor([-6.25, 7.0, math.inf, -0.25] * 15, dtype=torch.float64)
        b = torch.tensor([5, 4, 6, 10, 8, 2, 12, 11, 2, 8, 12, 11, 4, 3, 11] * 4, dtype=torch.int8)
        result = torch.floor_divide(a.to("ocl"), b.to("ocl")).cpu()
        torch.testing.assert_close(result, torch.floor_divide(a, b), rtol=0, atol=0, equal_nan=True)


class Hardswish(unittest.TestCase):
    def test_slope_at_the_ends(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            x = torch.tensor([-3.5, -3, -2.5, 0, 2.5, 3, 3.5], dtype=dtype)
            grad = torch.full_like(x, 4)
            expected = torch.ops.aten.hardswish_backward(grad.double(), x.double()).to(dtype)
            result = torch.ops.aten.hardswish_backward(grad.to("ocl"), x.to("ocl")).cpu()
            torch.testing.assert_close(result, expected, rtol=1e-6, atol=0)


class Digamma(unittest.TestCase):
    def test_close_to_its_poles(self) -> None:
        for dtype in (torch.float32, torch.float64):
            x = torch.tensor(
                [-1e-30, -1e-17, -3e-10, -1e-7, -1e-3, -0.3, -2.5, 1e-30, 1e-17, -1.0000001, 0.4],
                dtype=dtype,
            )
            expected = torch.digamma(x.double()).to(dtype)
            torch.testing.assert_close(
                torch.digamma(x.to("ocl")).cpu(), expected, rtol=1e-5, atol=1e-5
            )


class Zeros(unittest.TestCase):
    def test_odd_functions_keep_the_sign(self) -> None:
        functions = (torch.tanh, torch.sinh, torch.asinh, torch.atanh, torch.tan)
        functions += (torch.atan, torch.asin, torch.expm1, torch.log1p, torch.erf, torch.sqrt)
        for function in functions:
            for dtype in FLOATS:
                x = torch.tensor([-0.0, 0.0]).repeat(17).to(dtype)
                with self.subTest(function=function.__name__, dtype=dtype):
                    ours, theirs = function(x.to("ocl")).cpu(), function(x)
                    self.assertTrue(torch.equal(ours, torch.zeros_like(x)))
                    self.assertTrue(torch.equal(ours.signbit(), theirs.signbit()))

    def test_complex_tanh_at_infinity(self) -> None:
        # C99's: 1 + 0 i sin 2y, or -1; twice the largest y is infinite.
        largest = torch.finfo(torch.float32).max
        y = torch.tensor([0.5, 2.0, 4.0, 5.0, 1e10, largest, -largest, largest / 2, -2.0, -0.5])
        for x in (math.inf, -math.inf):
            z = torch.complex(torch.full_like(y, x), y)
            ours = torch.tanh(z.to("ocl")).cpu()
            self.assertTrue(torch.equal(ours.real, torch.full_like(y, math.copysign(1, x))))
            self.assertTrue(torch.equal(ours.imag, torch.zeros_like(y)))
            want = torch.sin(y.double()) * torch.cos(y.double())
            self.assertTrue(torch.equal(ours.imag.signbit(), want.signbit()))


class Division(unittest.TestCase):
    def test_quotients_are_rounded_right(self) -> None:
        # OpenCL C allows 2.5 ulp, with which 33 / 33 truncates to 0.
        a, b = torch.arange(1.0, 800.0)[:, None], torch.arange(1.0, 200.0)
        for dtype in (torch.float32, torch.float16):
            x, y = (t.contiguous().to(dtype) for t in torch.broadcast_tensors(a, b))
            for mode in (None, "trunc", "floor"):
                with self.subTest(dtype=dtype, mode=mode):
                    got = torch.div(x.to("ocl"), y.to("ocl"), rounding_mode=mode).cpu()
                    self.assertTrue(torch.equal(got, torch.div(x, y, rounding_mode=mode)))
        roots = torch.arange(1.0, 3000.0)
        exact = roots.double().sqrt().float()  # as the CPU does not round float32 right
        self.assertTrue(torch.equal(roots.to("ocl").sqrt().cpu(), exact))


class NumbersForIntegers(unittest.TestCase):
    """A floating number given beside integers is truncated if that fits, as on the CPU."""

    def test_truncated(self) -> None:
        for dtype in (torch.int64, torch.int32, torch.uint8, torch.int8):
            x, mask = torch.tensor([1, 0, 3], dtype=dtype), torch.tensor([True, False, True])
            for number in (1.0, 0.5, 2.7, 100.99):
                with self.subTest(dtype=dtype, number=number):
                    for call in (
                        lambda x, m, v=number: x.masked_fill(m, v),
                        lambda x, m, v=number: x.clone().masked_fill_(m, v),
                        lambda x, m, v=number: torch.nn.functional.threshold(x, 1.5, v),
                        lambda x, m, v=number: torch.addcmul(x, x, x, value=v % 2),
                    ):
                        got = call(x.to("ocl"), mask.to("ocl"))
                        self.assertTrue(torch.equal(got.cpu(), call(x, mask)))
        flags = torch.tensor([True, False], device="ocl")
        for number in (0.5, -2.0, float("nan")):
            self.assertEqual(flags.masked_fill(~flags, number).tolist(), [True, True])

    def test_what_does_not_fit(self) -> None:
        x = torch.tensor([1, 2], dtype=torch.uint8, device="ocl")
        for number in (300.0, -1.0, float("inf"), float("nan")):
            with self.assertRaisesRegex(RuntimeError, "without overflow"):
                x.masked_fill(x > 1, number)
        with self.assertRaisesRegex(RuntimeError, "alpha"):
            torch.add(x, x, alpha=1.5)


if __name__ == "__main__":
    unittest.main()
