"""Products with quantised weights: every format against float64 of what numpy unpacks from the
bytes (tests/oracle/quantised_weights.py), by ATen's names and by torch.ops.ocl."""

from __future__ import annotations

import math
import pathlib
import sys
import unittest
from typing import NamedTuple

import numpy as np
import torch
import torch_ocl  # noqa: F401
from gpu_style import THOROUGH, InGpuStyle, for_gpus
from torch.backends import ocl

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/oracle"))
import quantised_weights as oracle

TYPES = (torch.float32, torch.float16, torch.bfloat16)
EPS32 = torch.finfo(torch.float32).eps
MOST_ROWS = 8  # that kernels unpack the weight for


class Weight(NamedTuple):
    """As the operators take it, with its size."""

    kind: str
    n: int
    k: int
    group: int
    data: np.ndarray
    scale: np.ndarray | None = None
    zero: np.ndarray | None = None

    def values(self) -> torch.Tensor:
        group = self.group or self.k
        found = oracle.values(self.kind, self.data, self.n, self.k, group, self.scale, self.zero)
        return torch.from_numpy(np.ascontiguousarray(found))

    def parts(self) -> list[torch.Tensor | None]:
        given = (self.data, self.scale, self.zero)
        return [None if t is None else torch.from_numpy(t).to("ocl") for t in given]


def weight(kind: str, n: int, k: int, group: int = 0, seed: int = 1, columns: int = 64) -> Weight:
    """Random bytes, and scales as of weights that are about 1 at most."""
    draw = np.random.default_rng(seed)
    if kind in oracle.BLOCKS:
        _, elements, size, halves = oracle.BLOCKS[kind]
        data = draw.integers(0, 256, (n, k // elements, size), dtype=np.uint8)
        for at in halves:
            scale = draw.uniform(-1, 1, (n, k // elements)) / (2000 if elements > 32 else 60)
            data[..., at : at + 2] = scale.astype(np.float16)[..., None].view(np.uint8)
        return Weight(kind, n, k, 0, data.reshape(n, k // elements * size))
    if kind in ("nf4", "fp4", "codes"):
        data = draw.integers(0, 256, ((n * k + 1) // 2, 1), dtype=np.uint8)
        scale = draw.uniform(0.1, 1, math.ceil(n * k / group)).astype(np.float32)
        codes = draw.uniform(-1, 1, 16).astype(np.float32) if kind == "codes" else None
        return Weight(kind, n, k, group, data, scale, codes)
    parts = (n, max(k // group, 1) if group else 1)
    scale = (draw.uniform(0.5, 1, parts) / (8 if kind.startswith("int4") else 100)).astype(
        np.float32
    )
    if kind in ("int8", "int8_zeros", "e4m3", "e5m2"):
        data = draw.integers(0, 256, (n, k), dtype=np.uint8)
        if kind == "e4m3":
            data[data & 127 == 127] = 0
        if kind == "e5m2":
            data[data & 127 > 0x5F] = 0  # no infinities, nothing much larger than the others
        zero = draw.integers(-99, 99, parts, dtype=np.int8) if kind == "int8_zeros" else None
        return Weight(kind, n, k, group, data, scale, zero)
    if kind in ("int4", "int4_signed"):
        data = draw.integers(0, 256, (n, k // 2), dtype=np.uint8)
        zero = draw.integers(0, 16, parts, dtype=np.int8)
        if kind == "int4_signed":
            zero = draw.uniform(-1, 1, parts).astype(np.float32)
        return Weight(kind, n, k, group, data, scale, zero)
    assert kind == "int4_tiles", kind
    data = draw.integers(-(2**31), 2**31, (n // 8, k // columns, 32, columns // 32), dtype=np.int32)
    zero = draw.uniform(-1, 1, parts).astype(np.float32)
    return Weight(kind, n, k, group, data, scale, zero)


# Of sizes that no kernel's step divides, where the format allows.
WEIGHTS = {
    "int8": lambda: weight("int8", 37, 147),
    "int8 by groups": lambda: weight("int8", 21, 192, 64),
    "int8_zeros": lambda: weight("int8_zeros", 37, 147),
    "int8_zeros by groups": lambda: weight("int8_zeros", 21, 192, 64),
    "e4m3": lambda: weight("e4m3", 37, 147),
    "e4m3, one scale": lambda: weight("e4m3", 13, 96)._replace(scale=np.float32([[0.03]])),
    "e5m2": lambda: weight("e5m2", 37, 147),
    "e5m2 by groups": lambda: weight("e5m2", 21, 192, 64),
    "int4": lambda: weight("int4", 37, 288, 32),
    "int4 by rows": lambda: weight("int4", 11, 146),
    "int4, zeros between": lambda: weight("int4", 19, 288, 32)._replace(
        zero=np.random.default_rng(2).uniform(0, 15, (19, 9)).astype(np.float32)
    ),
    "int4_signed": lambda: weight("int4_signed", 37, 288, 32),
    "int4_signed by rows": lambda: weight("int4_signed", 11, 146),
    "int4_tiles": lambda: weight("int4_tiles", 40, 384, 128),
    "nf4": lambda: weight("nf4", 37, 320, 64),
    "nf4, rows within blocks": lambda: weight("nf4", 33, 96, 64),
    "nf4, odd": lambda: weight("nf4", 19, 77, 64),
    "fp4": lambda: weight("fp4", 37, 320, 128),
    "codes": lambda: weight("codes", 37, 320, 64),
    "codes, odd": lambda: weight("codes", 19, 77, 64),
    # By AVX-512, where the processor has it: K is a multiple of 128.
    "nf4 by 128": lambda: weight("nf4", 37, 384, 64),
    "codes by 128": lambda: weight("codes", 37, 384, 64),
    "int4_signed by 128": lambda: weight("int4_signed", 37, 384, 32),
    "int4 by 128": lambda: weight("int4", 37, 384, 32),
    "int4_tiles by 128": lambda: weight("int4_tiles", 40, 384, 32, columns=128),
    "q8_0": lambda: weight("q8_0", 37, 96),
    "q4_0": lambda: weight("q4_0", 37, 96),
    "q4_1": lambda: weight("q4_1", 37, 96),
    "q5_0": lambda: weight("q5_0", 37, 96),
    "q5_1": lambda: weight("q5_1", 37, 96),
    "q2_k": lambda: weight("q2_k", 21, 512),
    "q3_k": lambda: weight("q3_k", 21, 512),
    "q4_k": lambda: weight("q4_k", 21, 512),
    "q5_k": lambda: weight("q5_k", 21, 512),
    "q6_k": lambda: weight("q6_k", 21, 512),
    "iq4_nl": lambda: weight("iq4_nl", 37, 96),
    "iq4_xs": lambda: weight("iq4_xs", 21, 512),
}


def multiply(x: torch.Tensor, w: Weight, bias: torch.Tensor | None = None) -> torch.Tensor:
    data, scale, zero = w.parts()
    there = None if bias is None else bias.to("ocl")
    return torch.ops.ocl.quantised_mm(x, data, scale, zero, there, w.kind, w.n, w.group)


def unpacked(w: Weight, dtype: torch.dtype, index: torch.Tensor | None = None) -> torch.Tensor:
    data, scale, zero = w.parts()
    size = [w.n, w.k]
    return torch.ops.ocl.dequantise(data, scale, zero, index, w.kind, size, dtype, w.group)


class Quantised(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def near(self, got: torch.Tensor, x: torch.Tensor, values: torch.Tensor, bias=0) -> None:
        """Sums are rounded to the type, once. Before, float32 rounds each of the K products and
        sums: K eps at worst, of what is added; the largest element stands for those that offsets
        cancel. Products of many rows in 16 bits round the weight, too, by half an eps each."""
        dtype, x = x.dtype, x.double().reshape(-1, x.shape[-1])
        want = x @ values.T + bias
        self.assertEqual((got.device.type, got.dtype), ("ocl", dtype))
        eps = torch.finfo(dtype).eps
        most = values.abs().max() if values.numel() else 0
        bound = eps * want.abs() + 4 * EPS32 * (x.abs().sum(1, keepdim=True) * most + 1)
        if len(x) > MOST_ROWS or dtype != torch.float32:
            bound = bound + eps / 2 * (x.abs() @ values.abs().T)
        off = (got.cpu().double().reshape(want.shape) - want).abs() / bound
        self.assertLessEqual(off.max().item() if off.numel() else 0, 1)

    def test_unpacked(self) -> None:
        """Values are those of float64, rounded once or twice."""
        for name, make in WEIGHTS.items():
            w = make()
            want = w.values()
            for dtype in TYPES:
                with self.subTest(name, dtype=dtype):
                    got = unpacked(w, dtype)
                    self.assertEqual((got.shape, got.dtype), (want.shape, dtype))
                    bound = torch.finfo(dtype).eps * want.abs() + 4 * EPS32 * want.abs().max()
                    self.assertLessEqual(
                        ((got.cpu().double() - want).abs() - bound).max().item(), 0
                    )

    def test_rows_that_an_index_says(self) -> None:
        for name, make in WEIGHTS.items():
            w = make()
            with self.subTest(name):
                index = torch.tensor([[3, 0], [w.n - 1, 3]], device="ocl")
                if w.k == 77:
                    with self.assertRaisesRegex(NotImplementedError, f"{w.kind} with K = 77"):
                        unpacked(w, torch.float32, index)
                    continue
                got = unpacked(w, torch.float32, index)
                want = unpacked(w, torch.float32)[index]
                self.assertTrue(torch.equal(got.cpu(), want.cpu()))
        w = WEIGHTS["int8"]()
        unpacked(w, torch.float32, torch.tensor([w.n], device="ocl"))
        with self.assertRaisesRegex(IndexError, "_ocl_dequantise.out: index 37 is out of range"):
            torch.ocl.synchronize()

    def test_products(self) -> None:
        """Each format with each number of rows, and each type."""
        torch.manual_seed(1)
        for name, make in WEIGHTS.items():
            w = make()
            values = w.values()
            for dtype in TYPES:
                # The kernels differ by rows: the type changes loads and stores alone.
                for rows in (
                    (0, 1, 3, 8, 17, 130) if dtype == torch.float32 or THOROUGH else (1, 17)
                ):
                    with self.subTest(name, rows=rows, dtype=dtype):
                        x = torch.randn(rows, w.k).to(dtype)
                        self.near(multiply(x.to("ocl"), w), x, values)

    def test_rows_longer_than_what_is_kept(self) -> None:
        """Of x and of sums, by kernels that take both in parts."""
        torch.manual_seed(9)
        for kind, rows in (("q4_k", 1), ("q6_k", 2)):
            w = weight(kind, 150, 17408)
            x = torch.randn(rows, w.k)
            with self.subTest(kind):
                self.near(multiply(x.to("ocl"), w), x, w.values())

    def test_bias_and_strides(self) -> None:
        torch.manual_seed(2)
        for name in ("int8", "int4_tiles", "nf4", "q6_k"):
            w = WEIGHTS[name]()
            values = w.values()
            for rows in (2, 19):
                for dtype in (torch.float32, torch.bfloat16):
                    with self.subTest(name, rows=rows, dtype=dtype):
                        bias = torch.randn(w.n).to(dtype)
                        x = torch.randn(rows, w.k).to(dtype)
                        wide = torch.zeros(rows, 3 * w.k, device="ocl", dtype=dtype)
                        for given in (wide[:, 5 : 5 + w.k], wide[:, 1 : 1 + 2 * w.k : 2],
                                      wide.view(3 * w.k, rows)[: w.k].t()):  # fmt: skip
                            given.copy_(x)
                            self.near(multiply(given, w, bias), x, values, bias.double())
                        batch = multiply(x.to("ocl").view(rows, 1, w.k), w, bias)
                        self.assertEqual(batch.shape, (rows, 1, w.n))
                        self.near(batch, x, values, bias.double())

    def test_parts_with_strides(self) -> None:
        """Bytes with gaps, scales of one row for all, scales of 16 bits."""
        torch.manual_seed(3)
        w = weight("int8", 24, 96, 32)
        x = torch.randn(2, 96)
        data, scale, _ = w.parts()
        gaps = torch.zeros(24, 200, dtype=torch.uint8, device="ocl")[:, 7:103]
        gaps.copy_(data)
        for dtype in (torch.float16, torch.bfloat16):
            short = scale.to(dtype).t().contiguous().t()
            got = torch.ops.ocl.quantised_mm(x.to("ocl"), gaps, short, None, None, "int8", 24, 32)
            self.near(got, x, w._replace(scale=short.cpu().double().numpy()).values())
        one = scale[:1].contiguous()
        got = torch.ops.ocl.quantised_mm(x.to("ocl"), data, one, None, None, "int8", 24, 32)
        self.near(got, x, w._replace(scale=np.repeat(one.cpu().numpy(), 24, 0)).values())

    def test_not_finite(self) -> None:
        """NaN and infinities are where float64 has them."""
        for name, make in WEIGHTS.items():
            w = make()
            for case in ("x", "scale"):
                if case == "scale" and w.scale is None:
                    continue
                for rows in (2, 12):
                    if case == "scale" and name == "int8" and rows == 12:
                        continue  # the row's sum is scaled: infinite where a value times 0 is NaN
                    with self.subTest(name, case=case, rows=rows):
                        torch.manual_seed(4)
                        x, bad = torch.randn(rows, w.k), w
                        if case == "x":
                            x[0, 5], x[1, 7], x[1, 9] = torch.inf, -torch.inf, torch.nan
                        else:
                            scale = w.scale.copy()
                            scale.reshape(-1)[:: max(scale.size // 3, 1)] = np.inf
                            scale.reshape(-1)[-1] = np.nan
                            bad = w._replace(scale=scale)
                        want = x.double() @ bad.values().T
                        got = multiply(x.to("ocl"), bad).cpu().double()
                        self.assertTrue(torch.equal(got.isnan(), want.isnan()))
                        self.assertTrue(torch.equal(got.isinf(), want.isinf()))
                        at = want.isinf()
                        self.assertTrue(torch.equal(got[at], want[at]))

    def test_sums_before_the_scale_may_be_too_large(self) -> None:
        w = weight("int8", 9, 64)
        w = w._replace(scale=np.full((9, 1), 1e-6, np.float32))
        x = torch.randn(2, 64) * 2e37
        want = (x.double() @ w.values().T).float()
        self.assertTrue(want.isfinite().all())
        torch.testing.assert_close(multiply(x.to("ocl"), w).cpu(), want, rtol=1e-4, atol=1e30)

    def test_the_same_bits(self) -> None:
        torch.manual_seed(5)
        for name in ("nf4", "q4_k", "int8"):
            w = WEIGHTS[name]()
            x = torch.randn(3, w.k, device="ocl")
            first = multiply(x, w).cpu()
            for _ in range(3):
                self.assertTrue(torch.equal(multiply(x, w).cpu(), first))

    def test_empty(self) -> None:
        sizes = (("int8", 64, 0), ("q4_0", 32, 0), ("nf4", 64, 64))
        for kind, n, k, group in [(s[0], 0, *s[1:]) for s in sizes] + [
            (s[0], 5, 0, s[2]) for s in sizes
        ]:
            w = weight(kind, n, k, group)
            for rows in (0, 2, 12):
                with self.subTest(kind, n=n, k=k, rows=rows):
                    got = multiply(torch.randn(rows, k, device="ocl"), w, torch.ones(n))
                    self.assertTrue(torch.equal(got.cpu(), torch.ones(rows, n)))
            self.assertEqual(unpacked(w, torch.float16).shape, (n, k))

    def test_chosen(self) -> None:
        w = WEIGHTS["nf4"]()
        multiply(torch.randn(4, w.k, device="ocl"), w)
        name = "decode_teams" if for_gpus() else "decode_rows"
        self.assertEqual(ocl.last_choices()["quantised"], f"quantised.{name}")
        multiply(torch.randn(40, w.k, device="ocl"), w)
        self.assertEqual(ocl.last_choices()["quantised"], "quantised.panels")

    def test_memory(self) -> None:
        """The weight is there as floats a panel at a time: half of this one, or a thousandth of a
        GPU's memory."""
        whole = 8192 * 2048 * 4
        panel = max(0.6 * whole, torch.ocl.get_device_properties().total_memory / 1000)
        w = weight("nf4", 8192, 2048, 64)
        for rows in (1, 32):
            x = torch.randn(rows, 2048, device="ocl")
            data, scale, _ = w.parts()
            run = lambda: torch.ops.ocl.quantised_mm(x, data, scale, None, None, "nf4", 8192, 64)  # noqa: E731, B023
            run()
            torch.ocl.synchronize()
            torch.ocl.reset_peak_memory_stats()
            before = torch.ocl.memory_allocated()
            run()
            peak = torch.ocl.max_memory_allocated() - before
            self.assertLess(peak, panel if for_gpus() and rows > 8 else 0.3 * whole)

    def test_wrong(self) -> None:
        """Errors name the format, the dimension and the size."""
        w = weight("int4", 6, 64, 32)
        x = torch.randn(2, 64, device="ocl")
        data, scale, zero = w.parts()
        flat, bytes_of_nf4 = scale.view(-1), data.view(-1)
        given = {"x": x, "weight": data, "scale": scale, "zero": zero, "bias": None}
        given |= {"format": "int4", "rows": 6, "group": 32}
        q4_0 = {"format": "q4_0", "scale": None, "zero": None, "group": 0}
        nf4 = {"format": "nf4", "scale": flat, "zero": None, "group": 64}
        int8 = {"format": "int8", "x": x[:, :32], "scale": scale[:, :1], "group": 0}
        scales = r"6 rows of 2 groups have a scale of shape \[6, 2\], got \[2, 6\]"
        for words, wrong in {
            "no weights of format 'int5'; there are int8,": {"format": "int5"},
            "format int4 with N = 7 and K = 64 has 224 bytes, got 192": {"rows": 7},
            "format int4: groups of 128 do not divide K = 64": {"group": 128},
            "groups of a power of 2, at least 32, .* got 24": {"group": 24},
            scales: {"scale": scale.t()},
            "format int4 needs a zero": {"zero": None},
            "format int8 takes no zero": int8,
            r"expected a bias of shape \[6\], got \[5\]": {"bias": x[0, :5]},
            "format q4_0 has blocks of 32 elements, which do not divide K = 60": {
                **q4_0,
                "x": x[:, :60],
            },
            "format q4_0 with N = 6 and K = 64 has 216 bytes, got 192": q4_0,
            "q4_0 has its scales in its blocks: group must be 0, got 32": {**q4_0, "group": 32},
            "format nf4 with 6 x 64 elements has 192 bytes, got 191": {
                **nf4,
                "weight": bytes_of_nf4[1:],
            },
            r"in blocks of 64 have a scale of shape \[6\], got \[12\]": nf4,
        }.items():
            with self.subTest(words), self.assertRaisesRegex(RuntimeError, words):
                torch.ops.ocl.quantised_mm(**given | wrong)
        with self.assertRaisesRegex(NotImplementedError, "float64"):
            torch.ops.ocl.quantised_mm(**given | {"x": x.double()})
        self.near(multiply(x, w), x.cpu(), w.values())  # and all goes on


# Formats whose elements are whole numbers, which kernels multiply as bytes.
OF_WHOLE_NUMBERS = ("int8", "int8_zeros", "int4", "int4_signed", "int4_tiles", "q8_0", "q4_0",
                    "q4_1", "q4_k", "q5_k", "q6_k")  # fmt: skip
ON_GPUS = ("q5_0", "q5_1", "q2_k", "q3_k")  # these, too
OF_BYTES = ("quantised.decode_vnni", "quantised.decode_dots")


def as_bytes(x: torch.Tensor) -> torch.Tensor:
    """x as kernels round it: bytes with a scale for each 32 neighbours of a row, in float64."""
    rows, k = x.shape
    blocks = np.zeros((rows, -(-k // 32), 32), np.float32)
    blocks.reshape(rows, -1)[:, :k] = x.float().numpy()
    most = np.abs(blocks).max(2, keepdims=True)
    small = np.where(most < 2.0**-60, np.float32(2.0**64), np.float32(1))
    with np.errstate(divide="ignore"):
        inverse = np.where(most > 0, np.float32(127) / (most * small), np.float32(0))
    data = np.rint(blocks.astype(np.float64) * small * inverse)
    assert np.abs(data).max() <= 127
    scale = (most * (np.float32(1) / np.float32(127))).astype(np.float64)
    return torch.from_numpy((data * scale).reshape(rows, -1)[:, :k].copy())


class Int8Activations(InGpuStyle, unittest.TestCase):
    """``allow_int8_activations``: x rounded to bytes, all else as before."""

    OPTIMISED = False

    near = Quantised.near

    def setUp(self) -> None:
        self.addCleanup(setattr, ocl.matmul, "allow_int8_activations", False)
        self.assertFalse(ocl.matmul.allow_int8_activations)
        ocl.matmul.allow_int8_activations = True
        if for_gpus():  # what goes first, or instead where there is no instruction for bytes
            others = ocl.algorithms_disabled("quantised.decode_teams", "quantised.mma_rows")
            others.__enter__()
            self.addCleanup(others.__exit__, None, None, None)
        multiply(torch.ones(1, 64, device="ocl"), weight("int8", 8, 64))
        self.there = ocl.last_choices()["quantised"] in OF_BYTES

    def rounds(self, w: Weight, rows: int) -> bool:
        """Whether the product that ran was one of bytes; it has to be for the formats of this."""
        by_bytes = ocl.last_choices()["quantised"] in OF_BYTES
        known = w.kind in OF_WHOLE_NUMBERS or (for_gpus() and w.kind in ON_GPUS)
        if not for_gpus() and w.kind == "int4_tiles" and w.data.shape[3] != 4:
            known = False  # tiles of less than 128 columns
        expected = self.there and known and rows <= MOST_ROWS
        if rows > 0:
            self.assertEqual(by_bytes, expected, (w.kind, rows))
        return by_bytes and rows > 0

    def test_products(self) -> None:
        """Integer sums of each 32 elements, with the scales in float64; what is not rounded has the
        bits of before."""
        torch.manual_seed(11)
        for name, make in WEIGHTS.items():
            w = make()
            values = w.values()
            # The type changes loads and stores alone: one format of each size of a step is tried.
            short = name in ("int8", "int4 by 128", "q4_k") or THOROUGH
            for dtype in TYPES if short else TYPES[:1]:
                several = (
                    (2, 3, 8, 17) if dtype == torch.float32 and w.kind in OF_WHOLE_NUMBERS else ()
                )
                for rows in (1, *several):
                    with self.subTest(name, rows=rows, dtype=dtype):
                        x = torch.randn(rows, w.k).to(dtype)
                        got = multiply(x.to("ocl"), w)
                        if self.rounds(w, rows):
                            self.near_bytes(got, x, values)
                            continue
                        with ocl.flags(allow_int8_activations=False):
                            self.assertTrue(torch.equal(got.cpu(), multiply(x.to("ocl"), w).cpu()))

    def near_bytes(self, got: torch.Tensor, x: torch.Tensor, values: torch.Tensor, bias=0) -> None:
        """As ``near`` to what bytes give in float64, which is within half a scale of x for each
        element: 1 / 254 of the largest of its 32."""
        rows, k = x.shape
        rounded = as_bytes(x)
        want, wide = rounded @ values.T + bias, x.double()
        most = torch.nn.functional.pad(wide, (0, -k % 32)).view(rows, -1, 32).abs().amax(2)
        half = most.repeat_interleave(32, 1)[:, :k] * (1 / 254 + EPS32)  # the scale is rounded, too
        self.assertLessEqual(((rounded - wide).abs() - half).max().item(), 0)
        eps = torch.finfo(got.dtype).eps
        bound = eps * want.abs() + 4 * EPS32 * (
            rounded.abs().sum(1, keepdim=True) * values.abs().max() + 1
        )
        off = (got.cpu().double() - want).abs() / bound
        self.assertLessEqual(off.max().item(), 1)

    def test_long_rows(self) -> None:
        """More of x and of the weight's rows than are taken at once."""
        torch.manual_seed(12)
        for kind, group, rows in (("int8", 0, 1), ("int4", 64, 8), ("q6_k", 0, 2)):
            w = weight(kind, 150, 17408, group)
            x = torch.randn(rows, w.k)
            with self.subTest(kind):
                got = multiply(x.to("ocl"), w)
                if self.rounds(w, rows):
                    self.near_bytes(got, x, w.values())

    def test_bias_and_strides(self) -> None:
        torch.manual_seed(13)
        for name in ("int8", "int4 by 128", "q4_k"):
            w = WEIGHTS[name]()
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(name, dtype=dtype):
                    bias, x = torch.randn(w.n).to(dtype), torch.randn(3, w.k).to(dtype)
                    wide = torch.zeros(3, 3 * w.k, device="ocl", dtype=dtype)
                    for given in (wide[:, 5 : 5 + w.k], wide[:, 1 : 1 + 2 * w.k : 2]):
                        given.copy_(x)
                        got = multiply(given, w, bias)
                        if self.rounds(w, 3):
                            self.near_bytes(got, x, w.values(), bias.double())

    def test_zeros_and_numbers_far_apart(self) -> None:
        """Blocks of zeros, of denormal numbers and of the largest ones."""
        for kind in ("int8", "int4", "q6_k"):
            w = weight(kind, 9, 512, 32 if kind == "int4" else 0)
            x = torch.randn(8, 512, generator=torch.Generator().manual_seed(14))
            x[0] = 0
            x[1, 64:] = 0
            x[2] *= 1e-42
            x[3] *= 2.0**-100
            x[4, ::3] *= 1e-30
            x[5] *= 1e30
            x[6, 32:64] *= 1e-41
            x[7, 5] = 3e4
            got = multiply(x.to("ocl"), w)
            with self.subTest(kind):
                if self.rounds(w, 8):
                    for row in range(8):
                        scale = x[row].abs().max().item() or 1.0
                        unit = scale if scale > 1 or scale < 1e-20 else 1.0
                        have, want = got[row].cpu().double() / unit, as_bytes(x[row : row + 1])[0]
                        want = want @ w.values().T / unit
                        tiny = 600 * 2.0**-149 / unit  # denormal scales and sums
                        bound = 4 * EPS32 * (512 * w.values().abs().max() * scale / unit + 1) + tiny
                        self.assertLessEqual((have - want).abs().max().item(), bound)
                    self.assertTrue(torch.equal(got[0].cpu(), torch.zeros(w.n)))

    def test_not_finite(self) -> None:
        """NaN and infinities, of x and of scales, are where float64 has them: those rows are not
        rounded."""
        torch.manual_seed(15)
        for name, make in WEIGHTS.items():
            w = make()
            if w.kind not in OF_WHOLE_NUMBERS:
                continue
            x = torch.randn(4, w.k)
            x[0, 5], x[1, 7], x[1, 9], x[2, w.k - 1] = torch.inf, -torch.inf, torch.nan, -torch.inf
            with self.subTest(name):
                want = x.double() @ w.values().T
                got = multiply(x.to("ocl"), w).cpu().double()
                self.assertTrue(torch.equal(got.isnan(), want.isnan()))
                self.assertTrue(torch.equal(got.isinf(), want.isinf()))
                at = want.isinf()
                self.assertTrue(torch.equal(got[at], want[at]))
                if self.rounds(w, 4):
                    self.near_bytes(got[3:].float(), x[3:], w.values())

    def test_the_same_bits(self) -> None:
        torch.manual_seed(16)
        for name in ("int8", "int4 by 128", "q4_k"):
            w = WEIGHTS[name]()
            x = torch.randn(3, w.k, device="ocl")
            first = multiply(x, w).cpu()
            for _ in range(3):
                self.assertTrue(torch.equal(multiply(x, w).cpu(), first))

    def test_atens_names(self) -> None:
        """Layers reach the same kernels."""
        torch.manual_seed(17)
        x, q = torch.randn(2, 96).bfloat16(), torch.randint(-128, 128, (33, 96)).to(torch.int8)
        scales = (torch.rand(33) / 100).bfloat16()
        got = torch._weight_int8pack_mm(x.to("ocl"), q.to("ocl"), scales.to("ocl"))
        if self.there:
            self.assertIn(ocl.last_choices()["quantised"], OF_BYTES)
            self.near_bytes(got, x, q.double() * scales.double()[:, None])


class Names(InGpuStyle, unittest.TestCase):
    """ATen's operators."""

    OPTIMISED = False
    near = Quantised.near

    def test_int8(self) -> None:
        torch.manual_seed(6)
        for dtype in TYPES:
            x, q = torch.randn(5, 100).to(dtype), torch.randint(-128, 128, (33, 100)).to(torch.int8)
            scales = (torch.rand(33) / 100).to(dtype)
            got = torch._weight_int8pack_mm(x.to("ocl"), q.to("ocl"), scales.to("ocl"))
            self.near(got, x, q.double() * scales.double()[:, None])

    def test_int4(self) -> None:
        """Packed with the even element in the high nibble; (q - 8) * scale + zero."""
        torch.manual_seed(7)
        for inner in (2, 4, 8):
            for group in (32, 64, 128, 256):
                for dtype in TYPES if (inner, group) == (8, 64) else (torch.bfloat16,):
                    for rows in (1, 20):
                        with self.subTest(inner=inner, group=group, dtype=dtype, rows=rows):
                            q = torch.randint(0, 16, (24, 512), dtype=torch.uint8)
                            x = torch.randn(rows, 512).to(dtype)
                            parts = (torch.randn(512 // group, 24, 2) / 8).to(dtype)
                            packed = torch._convert_weight_to_int4pack(
                                (q[:, ::2] << 4 | q[:, 1::2]).to("ocl"), inner
                            )
                            self.assertEqual(packed.shape, (3, 512 // (16 * inner), 32, inner // 2))
                            self.assertEqual(packed.dtype, torch.int32)
                            got = torch._weight_int4pack_mm(
                                x.to("ocl"), packed, group, parts.to("ocl")
                            )
                            scale, zero = (
                                p.t().double().repeat_interleave(group, 1) for p in parts.unbind(2)
                            )
                            self.near(got, x, (q.double() - 8) * scale + zero)

    def test_int4_with_parts_apart(self) -> None:
        """Packed with the even element in the low nibble; (q - zero) * scale."""
        torch.manual_seed(8)
        for dtype in TYPES:
            for rows in (1, 20):
                q = torch.randint(0, 16, (21, 256), dtype=torch.uint8)
                packed = (q[:, 1::2] << 4 | q[:, ::2]).contiguous().view(torch.int32)
                scales = (torch.rand(4, 21) / 8).to(dtype)
                zeros = torch.randint(0, 16, (4, 21)).to(torch.int8)
                x = torch.randn(rows, 256).to(dtype)
                got = torch._weight_int4pack_mm_with_scales_and_zeros(
                    x.to("ocl"), packed.to("ocl"), 64, scales.to("ocl"), zeros.to("ocl")
                )
                each = [t.t().double().repeat_interleave(64, 1) for t in (scales, zeros)]
                self.near(got, x, (q.double() - each[1]) * each[0])

    def test_tiles_are_where_torchao_slices_them(self) -> None:
        """8 rows a tile in the first dimension, innerKTiles * 16 columns in the second."""
        q = torch.randint(0, 256, (32, 128), dtype=torch.uint8, device="ocl")
        packed = torch._convert_weight_to_int4pack(q, 4)
        rows = torch._convert_weight_to_int4pack(q[8:24], 4)
        self.assertTrue(torch.equal(packed[1:3].cpu(), rows.cpu()))
        columns = torch._convert_weight_to_int4pack(q[:, 32:96].contiguous(), 4)
        self.assertTrue(torch.equal(packed[:, 1:3].cpu(), columns.cpu()))

    def test_wrong(self) -> None:
        q = torch.zeros(12, 32, dtype=torch.uint8, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "N to be divisible by 8, got 12"):
            torch._convert_weight_to_int4pack(q, 2)
        with self.assertRaisesRegex(RuntimeError, "divisible by innerKTiles . 16 = 128, got 64"):
            torch._convert_weight_to_int4pack(q[:8], 8)
        with self.assertRaisesRegex(RuntimeError, "innerKTiles need to be 2, 4, or 8, got 3"):
            torch._convert_weight_to_int4pack(q[:8], 3)
        packed = torch._convert_weight_to_int4pack(q[:8], 2)
        x, parts = torch.randn(1, 64, device="ocl"), torch.ones(2, 8, 2, device="ocl")
        torch._weight_int4pack_mm(x, packed, 32, parts)
        with self.assertRaisesRegex(RuntimeError, "groups of 128 do not divide K = 64"):
            torch._weight_int4pack_mm(x, packed, 128, parts)
        with self.assertRaisesRegex(RuntimeError, "groups of 32, 64, 128 or 256, got 48"):
            torch._weight_int4pack_mm(x, packed, 48, parts)
        with self.assertRaisesRegex(RuntimeError, r"of shape \[1, 8, 2\], got \[2, 8, 2\]"):
            torch._weight_int4pack_mm(x, packed, 64, parts)

    def test_fake_results(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            x = torch.empty(3, 64, dtype=torch.bfloat16, device="ocl")
            q = torch.empty(16, 32, dtype=torch.uint8, device="ocl")
            packed = torch._convert_weight_to_int4pack(q, 2)
            parts = torch.empty(2, 16, 2, device="ocl")
            scale = torch.empty(16, 2, device="ocl")
            byte = torch.empty(16, 64, dtype=torch.int8, device="ocl")
            words = torch.empty(16, 8, dtype=torch.int32, device="ocl")
            zeros = torch.empty(2, 16, dtype=torch.int8, device="ocl")
            apart = torch._weight_int4pack_mm_with_scales_and_zeros
            for got in (
                torch._weight_int4pack_mm(x, packed, 32, parts),
                apart(x, words, 32, parts[:, :, 0], zeros),
                torch._weight_int8pack_mm(x, byte, scale[:, 0]),
                torch.ops.ocl.quantised_mm(x, byte, scale, None, None, "int8", 16, 32),
                torch.ops.ocl.quantised_mm(x[:, None], byte, scale, None, None, "int8", 16, 32)[
                    :, 0
                ],
            ):
                self.assertEqual((got.shape, got.dtype), ((3, 16), torch.bfloat16))
                self.assertEqual(got.device.type, "ocl")
            got = torch.ops.ocl.dequantise(byte, scale, None, None, "int8", [16, 64], x.dtype, 32)
            self.assertEqual((got.shape, got.dtype), ((16, 64), torch.bfloat16))


if __name__ == "__main__":
    unittest.main()
