"""cumprod where products leave the range of numbers: infinite, zero or NaN where the CPU's running
product is, in the same places."""

import os
import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401

TYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}


def sequences(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Rows of 3000 numbers, longer than a block or a tile: what happens lies within one, across
    two, and in different ones."""
    torch.manual_seed(3)
    # In the accumulator: a double for float32 and float64, a float for the 16-bit types.
    big, small = {
        torch.float32: (1e30, 1e-30),
        torch.float64: (1e300, 1e-300),
        torch.float16: (6e4, 2e-5),
        torch.bfloat16: (1e30, 1e-30),
    }[dtype]
    ones = torch.ones(3000, dtype=torch.float64)

    def row(**factors: float) -> torch.Tensor:
        x = ones.clone()
        for place, factor in factors.items():
            first, _, last = place[1:].partition("_")
            x[int(first) : int(last or first) + 1] = factor
        return x.to(dtype)

    random = torch.randn(3000, dtype=torch.float64)
    # A product that lies among the accumulator's denormal numbers, whose rounding decides what
    # comes of it, and returns.
    denormal = 0.7 + torch.rand(3000, dtype=torch.float64) * 0.55
    fall, rise = {
        torch.float32: ([1e-30] * 10 + [1e-20], [1e30] * 10),
        torch.float64: ([1e-300, 1e-20], [1e300]),
        torch.float16: ([2e-5] * 9, [6e4] * 7),
        torch.bfloat16: ([1e-30, 1e-11], [1e30]),
    }[dtype]
    denormal[1000 : 1000 + len(fall)] = torch.tensor(fall, dtype=torch.float64)
    denormal[1100 : 1100 + len(rise)] = torch.tensor(rise, dtype=torch.float64)
    denormal[:1000] = 1
    return {
        "among denormal numbers": denormal.to(dtype),
        "over and back": row(p0_1=big, p2_3=small),
        "over and back far away": row(p10_11=big, p2000_2001=small),
        "under and back": row(p5_6=small, p7_8=big),
        "under and back in other blocks": row(p300_301=small, p900_901=big),
        "over for good": row(p10_60=big, p1100_1400=small),
        "under for good": row(p10_130=small, p1500_1900=big),
        "over for good in the last elements": row(p2950_2999=big),
        "tiny factors beside an infinite product": row(p100_150=big, p512_700=small),
        "over, then a zero": row(p0_50=big, p2000=0.0),
        "a zero, then an infinity": row(p700=0.0, p1800=float("inf")),
        "an infinity, then tiny ones": row(p3=float("inf"), p256_600=small, p1024_1500=-small),
        "NaN": row(p1200=float("nan"), p1300=0.0),
        "signs": row(p0_2000=-1.0, p2001=float("-inf")),
        "many that are small": (random * 0.1).to(dtype),
        "many that are large": (random * 4).to(dtype),
        "around one": (1 + random * 0.01).to(dtype),
    }


class Cumprod(gpu_style.InGpuStyle, unittest.TestCase):
    def check(self, x: torch.Tensor, dim: int) -> None:
        expected, got = x.cumprod(dim), x.to("ocl").cumprod(dim).cpu()
        for test in (torch.isnan, torch.isposinf, torch.isneginf):
            self.assertTrue(torch.equal(test(got), test(expected)), test.__name__)
        finite = expected.isfinite()
        # 3000 products rounded to 24 bits are off by a random walk of their roundings; each result
        # is rounded once more.
        steps = 4 * 3000**0.5 * (2**-53 if x.dtype == torch.float64 else 2**-24)
        tolerance = steps + torch.finfo(x.dtype).eps
        # A device may take denormal numbers of its arithmetic for 0; those of float16 are none, but
        # may be one unit off.
        info = torch.finfo(x.dtype)
        smallest = info.smallest_normal * (2 * info.eps if x.dtype == torch.float16 else 1)
        torch.testing.assert_close(
            got[finite].double(), expected[finite].double(), rtol=tolerance, atol=smallest
        )

    def test_rows_and_columns(self) -> None:
        types = [
            t
            for t in TYPES.values()
            if t != torch.float64 or torch.ocl.get_device_properties(0).has_fp64
        ]
        for dtype in types:
            rows = sequences(dtype)
            for name, x in rows.items():
                with self.subTest(name, dtype=dtype):
                    self.check(x, 0)
            together = torch.stack(list(rows.values()))
            with self.subTest("rows", dtype=dtype):
                self.check(together, 1)
            with self.subTest("columns", dtype=dtype):
                self.check(together.t().repeat(1, 3).contiguous(), 0)
            with self.subTest("short", dtype=dtype):
                self.check(together[:, :200].contiguous(), 1)
            with self.subTest("strided", dtype=dtype):
                self.check(together.t()[::2], 0)

    def test_in_place_and_to_another_type(self) -> None:
        x = sequences(torch.float32)["over for good"]
        y = x.to("ocl")
        self.assertTrue(torch.equal(y.cumprod_(0).cpu(), x.cumprod(0)))
        self.assertTrue(
            torch.equal(
                torch.arange(1, 100, device="ocl").cumprod(0, dtype=torch.float32).cpu().isinf(),
                torch.arange(1, 100).cumprod(0, dtype=torch.float32).isinf(),
            )
        )

    @unittest.skipIf(os.environ.get("OCLTENSOR_FLOAT64") == "0", "is set already")
    def test_without_float64(self) -> None:
        gpu_style.run_again(self, OCLTENSOR_FLOAT64="0")


if __name__ == "__main__":
    unittest.main()
