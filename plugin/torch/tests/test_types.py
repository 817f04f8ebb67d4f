"""complex128, complex32, uint16, uint32, uint64 and float8 on ocl against torch's CPU."""

from __future__ import annotations

import io
import math
import unittest
from collections.abc import Callable

import numpy
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
FLOAT8 = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
)
Function = Callable[..., torch.Tensor]


class Types(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(3)

    def each(self, functions: dict[str, Function], *tensors: torch.Tensor, rtol: float) -> None:
        """Compares on both devices; an error counts by the largest element of the result."""
        for name, function in functions.items():
            with self.subTest(name=name, dtype=tensors[0].dtype):
                wanted = function(*tensors)
                mine = function(*(t.to("ocl") for t in tensors))
                self.assertEqual((mine.device.type, mine.dtype), ("ocl", wanted.dtype))
                mine = mine.cpu()
                if not wanted.is_floating_point() and not wanted.is_complex():
                    self.assertTrue(torch.equal(mine, wanted))
                    continue
                scale = float(wanted.abs().max()) if wanted.numel() else 0
                torch.testing.assert_close(mine, wanted, rtol=0, atol=rtol * (1 + scale))

    def same_bits(self, mine: torch.Tensor, wanted: torch.Tensor) -> None:
        self.assertEqual(mine.dtype, wanted.dtype)
        self.assertTrue(torch.equal(mine.cpu().view(torch.uint8), wanted.view(torch.uint8)))


def chosen(rows: int) -> Function:
    """Index with a tensor on the device of the argument."""
    return lambda x: x[torch.tensor([rows - 1, 0, 1], device=x.device)]


MOVES: dict[str, Function] = {
    "slice": lambda x: x[1:, ::2].contiguous(),
    "transpose": lambda x: x.t().contiguous(),
    "index": chosen(40),
    "index_select": lambda x: x.index_select(1, torch.tensor([2, 0], device=x.device)),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(3),
    "tril": lambda x: x.tril(),
    "cat": lambda x: torch.cat([x, x[:3]]),
    "gather": lambda x: x.gather(0, torch.arange(9, device=x.device).view(1, 9)),
    "scatter": lambda x: x.scatter(0, torch.arange(9, device=x.device).view(1, 9), x[3:4]),
    "where": lambda x: torch.where(torch.arange(9, device=x.device) > 3, x, x[:1]),
    "masked": lambda x: x[(torch.arange(40, device=x.device) % 3 == 0)],
    "masked_fill": lambda x: x.masked_fill(torch.arange(9, device=x.device) > 3, 2),
}


# A handful of real functions each, in float64: their rounding is a few eps, 2e-16 each.
class Complex128(Types):
    RTOL = 1e-13

    def setUp(self) -> None:
        super().setUp()
        self.x = torch.randn(40, 9, dtype=torch.complex128)

    def test_moves(self) -> None:
        self.each(MOVES, self.x, rtol=0)

    def test_functions(self) -> None:
        names = (
            "exp log log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh "
            "atanh sigmoid reciprocal abs angle neg square sgn expm1 log1p"
        )
        self.each({n: getattr(torch, n) for n in names.split()}, self.x, rtol=self.RTOL)
        self.each({n: getattr(torch, n) for n in names.split()}, self.x * 40, rtol=self.RTOL)

    def test_arithmetic(self) -> None:
        functions = {
            "mul": lambda x: x * x.flip(0),
            "div": lambda x: x / (x.flip(0) + 3),
            "pow": lambda x: x**2.5,
            "complex pow": lambda x: x ** (1 + 2j),
            "number": lambda x: x * (2.5 - 1j) + 3,
            "float64 beside complex64": lambda x: x.real * x.to(torch.complex64),
            "huge quotient": lambda x: (x * 1e300) / (x * 1e300),
            "tiny quotient": lambda x: (x * 1e-300) / (x * 1e-300),
        }
        self.each(functions, self.x, rtol=1e-12)

    def test_reductions_and_products(self) -> None:
        functions = {
            "sum": lambda x: x.sum(0),
            "mean": lambda x: x.mean(),
            "prod": lambda x: x.prod(1),
            "var": lambda x: x.var(0),
            "norm": lambda x: x.norm(),
            "cumsum": lambda x: x.cumsum(0),
            "cumprod": lambda x: x.cumprod(1),
            "logcumsumexp": lambda x: x.logcumsumexp(1),
            "mm": lambda x: x @ x.t(),
            "addmm": lambda x: torch.addmm(x[:, :1], x, x.mT, alpha=2j, beta=0.5),
            "bmm": lambda x: x.view(4, 10, 9) @ x.view(4, 10, 9).mH,
            "index_add": lambda x: x.index_add(0, torch.tensor([1, 1], device=x.device), x[:2]),
            "nonzero": lambda x: x.nonzero(),
        }
        self.each(functions, self.x, rtol=1e-12)

    def test_gradients(self) -> None:
        def loss(x: torch.Tensor) -> torch.Tensor:
            x = x.detach().requires_grad_()
            ((x @ x.mT).tanh() * x[:, :1].exp()).abs().sum().backward()
            assert x.grad is not None
            return x.grad

        self.each({"gradient": loss}, self.x / 4, rtol=1e-11)

    def test_fourier_transforms(self) -> None:
        for n in (1, 8, 13, 17, 100, 210, 1009, 4096):
            x = torch.randn(3, n, dtype=torch.complex128)
            functions: dict[str, Function] = {
                f"fft {n}": torch.fft.fft,
                f"ifft {n}": torch.fft.ifft,
                f"rfft {n}": lambda x: torch.fft.rfft(x.real),
                f"irfft {n}": lambda x, n=n: torch.fft.irfft(torch.fft.rfft(x.real), n),
            }
            self.each(functions, x, rtol=1e-14)


class Complex32(Types):
    # float16 has 11 bits, and what is computed in float32 is rounded to them once.
    def test_against_complex64(self) -> None:
        x = torch.randn(40, 9, dtype=torch.complex64).to(torch.complex32)
        functions: dict[str, Function] = {
            "mul": lambda x: x * x,
            "abs": torch.abs,
            "exp": torch.exp,
            "sum": lambda x: x.sum(0),
            "mm": lambda x: x @ x.t(),
            "fft": torch.fft.fft,
        }
        self.same_bits(x.to("ocl"), x)
        for name, function in functions.items():
            with self.subTest(name=name):
                mine = function(x.to("ocl")).cpu()
                wanted = function(x.to(torch.complex64))
                wide = mine.to(torch.complex64) if mine.is_complex() else mine.float()
                scale = float(wanted.abs().max())
                torch.testing.assert_close(wide, wanted, rtol=0, atol=2e-3 * (1 + scale))


class Unsigned(Types):
    def test_what_the_cpu_has(self) -> None:
        functions: dict[str, Function] = {
            "mul": lambda x: x * x,
            "and": lambda x: x & x,
            "equal": lambda x: x == x[:1],
            "sum": lambda x: x.sum(0),
            "prod": lambda x: x[:3].prod(0),
            "cumsum": lambda x: x.cumsum(0),
            "sort": lambda x: x.sort(0)[0],
            "unique": torch.unique,
            "any": torch.any,
            "to float": lambda x: x.float(),
            "to int64": lambda x: x.long(),
            "quotient": lambda x: x / x[:1].clone().fill_(7),
            "cat": MOVES["cat"],
        }
        if VERSION >= (2, 13):
            functions["where"] = MOVES["where"]
        for dtype in UNSIGNED:
            x = torch.randint(0, 60000, (40, 9)).to(dtype)
            self.each(functions, x, rtol=1e-7)
            self.assertIn(str(dtype), repr(x.to("ocl")))
            self.assertEqual(torch.randint(3, 5, (9,), dtype=dtype, device="ocl").dtype, dtype)

    def test_products(self) -> None:
        """The CPU has none but of signed types and uint8; NumPy's wrap around, as ocl's do."""
        generator = numpy.random.default_rng(7)
        types = (*UNSIGNED, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        for dtype in types:
            info, kind = torch.iinfo(dtype), numpy.dtype(str(dtype).removeprefix("torch."))

            def draw(*shape: int, info=info, kind=kind) -> numpy.ndarray:
                return generator.integers(info.min, info.max, shape, dtype=kind, endpoint=True)

            for m, k, n in ((3, 4, 5), (1, 300, 1), (33, 65, 2), (2, 700, 40), (2, 0, 3)):
                a, b, s = draw(2, m, k), draw(2, k, n), draw(m, n)
                left, right, added = (torch.from_numpy(x).to("ocl") for x in (a, b, s))
                scaled = s * kind.type(3) + kind.type(5) * (a[0] @ b[0])
                for ours, wanted in (
                    (left @ right, a @ b),
                    (left.mT.contiguous().mT[0] @ right[0], a[0] @ b[0]),
                    (torch.mv(left[0], right[0, :, 0]), a[0] @ b[0, :, 0]),
                    (torch.dot(left[0, 0], right[0, :, 0]), a[0, 0] @ b[0, :, 0]),
                    (torch.addmm(added, left[0], right[0], beta=3, alpha=5), scaled),
                ):
                    with self.subTest(dtype=dtype, sizes=(m, k, n)):
                        self.assertTrue((ours.cpu().numpy() == wanted).all())

    def test_products_of_no_numbers(self) -> None:
        """bool has no products, but the CPU takes it where nothing is multiplied."""
        for dtype in (torch.bool, *UNSIGNED):
            for sizes in ((1, 0, 1), (0, 3, 2), (2, 3, 0)):
                m, k, n = sizes
                theirs = torch.zeros(m, k, dtype=dtype) @ torch.zeros(k, n, dtype=dtype)
                zeros = torch.zeros(m, k, dtype=dtype, device="ocl")
                ours = zeros @ torch.zeros(k, n, dtype=dtype, device="ocl")
                self.assertTrue(torch.equal(ours.cpu(), theirs) and ours.dtype == dtype)
        for dtype in (torch.bool, torch.float8_e5m2):
            one = torch.ones(2, 2, device="ocl").to(dtype)
            with self.assertRaises(NotImplementedError):
                one @ one

    def test_the_largest_numbers(self) -> None:
        for dtype in UNSIGNED:
            x = torch.tensor([torch.iinfo(dtype).max, 1, 0], dtype=dtype)
            self.each({"double": lambda x: x.double(), "sort": lambda x: x.sort()[0]}, x, rtol=0)
            self.assertEqual(x.to("ocl").tolist(), x.tolist())


class Made(Types):
    """Complex numbers from their parts."""

    def test_of_every_type(self) -> None:
        for dtype in (torch.float16, torch.float32, torch.float64):
            a, b = torch.randn(5, 1).to(dtype), torch.randn(4).to(dtype)
            self.each({"complex": torch.complex}, a, b, rtol=0)
            if dtype != torch.float16 or VERSION >= (2, 14):  # the CPU has it since then
                self.each({"polar": torch.polar}, a, b, rtol=4 * torch.finfo(dtype).eps)
        x = torch.randn(3, 9, dtype=torch.complex128)
        self.each({"cov": torch.cov, "corrcoef": torch.corrcoef}, x, rtol=1e-12)

    def test_refusals(self) -> None:
        def parts(device: str, one: torch.dtype, other: torch.dtype) -> tuple:
            return torch.ones(2, device=device).to(one), torch.ones(2, device=device).to(other)

        for one, other in (
            (torch.float32, torch.float64),
            (torch.bfloat16, torch.bfloat16),
            (torch.int32, torch.int32),
            (torch.complex64, torch.complex64),
        ):
            for function in (torch.complex, torch.polar):
                messages = []
                for device in ("cpu", "ocl"):
                    with self.assertRaises(RuntimeError) as caught:
                        function(*parts(device, one, other))
                    messages.append(str(caught.exception).split("\n")[0])
                self.assertEqual(messages[1], messages[0])
        for device in ("cpu", "ocl"):
            if VERSION < (2, 14):
                with self.assertRaises(NotImplementedError):
                    torch.polar(*parts(device, torch.float16, torch.float16))
            with self.assertRaises(RuntimeError):
                out = torch.zeros(2, dtype=torch.complex128, device=device)
                torch.complex(*parts(device, torch.float32, torch.float32), out=out)


class Hash(Types):
    def test_of_every_type(self) -> None:
        """An exclusive or of the elements' bits, widened to 64."""
        special = [0.0, -0.0, math.inf, -math.inf, 1.0, -2.5, 2.0**-24]
        functions: dict[str, Function] = {
            "all": torch.hash_tensor,
            "row": lambda x: torch.hash_tensor(x, dim=1),
            "column": lambda x: torch.hash_tensor(x, dim=0, keepdim=True),
            "both": lambda x: torch.hash_tensor(x, dim=(0, -1)),
            "transposed": lambda x: torch.hash_tensor(x.t(), dim=0),
            "slice": lambda x: torch.hash_tensor(x[1:, ::3], dim=1),
            "number": lambda x: torch.hash_tensor(x[0, 0]),
            "no rows": lambda x: torch.hash_tensor(x[:0], dim=1),
        }
        integers = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        for dtype in (*integers, *floats):
            x = (torch.randn(37, 129, dtype=torch.float64) * 100).to(dtype)
            if dtype in floats:
                x[3, : len(special)] = torch.tensor(special, dtype=dtype)
            for name, function in functions.items():
                with self.subTest(name, dtype=dtype):
                    ours, theirs = function(x.to("ocl")), function(x)
                    self.assertEqual(ours.dtype, torch.uint64)
                    self.assertTrue(torch.equal(ours.cpu(), theirs))
        for dtype in UNSIGNED:  # which the CPU declines
            x = torch.randint(0, 60000, (5, 7)).to(dtype)
            ours = torch.hash_tensor(x.to("ocl"), dim=0)
            self.assertTrue(torch.equal(ours.cpu(), torch.hash_tensor(x.to(torch.int64), dim=0)))
        large = torch.randint(-(2**63), 2**63 - 1, (200001,))
        self.assertTrue(
            torch.equal(torch.hash_tensor(large.to("ocl")).cpu(), torch.hash_tensor(large))
        )

    def test_refusals(self) -> None:
        for device in ("cpu", "ocl"):
            x = torch.ones(2, 3, device=device)
            for refused in (
                lambda x: torch.hash_tensor(x, mode=1),
                lambda x: torch.hash_tensor(x[:0]),
                lambda x: torch.hash_tensor(x[:0], dim=0),
                lambda x: torch.hash_tensor(x, dim=(1, 1)),
                lambda x: torch.hash_tensor(x.to(torch.complex64)),
                lambda x: torch.hash_tensor(
                    x, out=torch.zeros((), dtype=torch.int64, device=x.device)
                ),
            ):
                with self.assertRaises((RuntimeError, IndexError)):
                    refused(x)


class Float8(Types):
    def test_every_code(self) -> None:
        for dtype in FLOAT8:
            codes = torch.arange(256, dtype=torch.uint8).view(dtype)
            for other in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
                with self.subTest(dtype=dtype, other=other):
                    mine, wanted = codes.to("ocl").to(other).cpu(), codes.to(other)
                    torch.testing.assert_close(mine, wanted, rtol=0, atol=0, equal_nan=True)

    def test_rounding(self) -> None:
        special = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e30, -1e30, 1e-30]
        special += [240, 248, 448, 464, 465, 480, 57344, 61439, 61440, 2**-9, 2**-10, 2**-18]
        x = torch.cat([torch.randn(9000) * 100, torch.randn(9000) / 100, torch.tensor(special)])
        for dtype in FLOAT8:
            for source in (x, x.double(), x.half(), x.bfloat16(), torch.arange(-600, 600)):
                if VERSION < (2, 13) and dtype == torch.float8_e4m3fn:
                    source = source[~(source.abs() > 464)]  # the CPU's too large numbers were NaN
                with self.subTest(dtype=dtype, source=source.dtype):
                    self.same_bits(source.to("ocl").to(dtype), source.to(dtype))

    def test_moves_and_comparisons(self) -> None:
        for dtype in FLOAT8:
            x = torch.arange(256, dtype=torch.uint8).view(16, 16).view(dtype)
            ocl = x.to("ocl")
            self.same_bits(ocl.t().contiguous(), x.t().contiguous())
            self.same_bits(ocl[torch.tensor([3, 2])], x.view(torch.uint8)[[3, 2]].view(dtype))
            self.same_bits(torch.cat([ocl, ocl]), torch.cat([x, x]))
            self.same_bits(
                torch.full((5,), 3.3, dtype=dtype, device="ocl"), torch.full((5,), 3.3, dtype=dtype)
            )
            self.assertTrue(torch.equal((ocl == ocl).cpu(), x == x))

    def test_storage(self) -> None:
        """Created, viewed, saved, loaded and printed, as checkpoints of quantised models are."""
        for dtype in FLOAT8:
            with self.subTest(dtype=dtype):
                x = torch.arange(1, 65, dtype=torch.uint8).view(8, 8).view(dtype)
                here = torch.empty(8, 8, dtype=dtype, device="ocl").copy_(x)
                self.same_bits(here, x)
                self.same_bits(here.clone()[2:, ::3], x[2:, ::3].contiguous())
                self.same_bits(here.view(torch.uint8).view(dtype), x)
                ones = torch.ones(3, dtype=dtype, device="ocl")
                self.same_bits(ones, torch.ones(3, dtype=dtype))
                file = io.BytesIO()
                torch.save(here, file)
                for place in ("ocl", "cpu"):
                    file.seek(0)
                    loaded = torch.load(file, map_location=place)
                    self.assertEqual(loaded.device.type, place)
                    self.same_bits(loaded, x)
                self.assertEqual(str(here).replace(", device='ocl:0'", ""), str(x))


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # ComplexHalf is experimental, says PyTorch
