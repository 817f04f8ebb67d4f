"""Products of groups (torch._grouped_mm, the layers of mixtures of experts) against torch's CPU:
operands of two and three dimensions, gradients, wrong ends, recordings."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import IS_GPU_STYLE, THOROUGH, InGpuStyle, environment
from torch.backends import ocl

HAS_UNITS = "OCLTENSOR_NVIDIA_MMA" in os.environ
grouped_mm = torch._grouped_mm
# Results are rounded once; the factors are what they are. Relative to the largest result.
LIMITS = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
# Which factors have their columns side by side: 1: the first, 2: the second.
LAYOUTS = {torch.float32: (0, 3), torch.float16: (0,), torch.bfloat16: (1, 2)}
if THOROUGH:
    LAYOUTS = dict.fromkeys(LIMITS, range(4))
# Empty parts at the begin, in the middle, at the end; one part; parts that end before the size.
ENDS = {
    "some": ([0, 24, 24, 75, 96, 96], 96),
    "one": ([64], 64),
    "early": ([9, 40, 41], 64),
    "none": ([0, 0], 32),
}


def factors(form: str, ends: list[int], size: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Of sizes that no tile divides, but lines of 16 bytes, which torch asks for."""
    m, n, k, groups = 40, 72, 48, len(ends)
    a, b = {
        "2d-3d": ((size, k), (groups, k, n)),
        "3d-2d": ((groups, m, k), (k, size)),
        "2d-2d": ((m, size), (size, n)),
    }[form]
    return [torch.randn(*shape).to(dtype) for shape in (a, b)]


def wanted(form: str, a: torch.Tensor, b: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """The definition, in float64. What belongs to no group is 0."""
    a, b = a.double(), b.double()
    parts = [slice(x, y) for x, y in zip([0, *ends[:-1]], ends, strict=True)]
    if form == "2d-2d":
        return torch.stack([a[:, part] @ b[part] for part in parts])
    out = torch.zeros(a.shape[-2], b.shape[-1], dtype=torch.float64)
    for group, part in enumerate(parts):
        if form == "2d-3d":
            out[part] = a[part] @ b[group]
        else:
            out[:, part] = a[group] @ b[:, part]
    return out


def columns_first(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, columns side by side."""
    return x.mT.contiguous().mT


class GroupedProducts(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def near(self, got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> None:
        self.assertEqual((got.device.type, got.dtype), ("ocl", dtype))
        scale = want.abs().max().item() if want.numel() else 0
        torch.testing.assert_close(got.cpu().double(), want, rtol=0, atol=LIMITS[dtype] * scale)

    def test_forms(self) -> None:
        for form in ("2d-3d", "3d-2d", "2d-2d"):
            for name, (ends, size) in ENDS.items():
                for dtype in LIMITS if name == "some" or THOROUGH else (torch.float32,):
                    torch.manual_seed(1)
                    a, b = factors(form, ends, size, dtype)
                    want = wanted(form, a, b, ends)
                    offs = torch.tensor(ends, dtype=torch.int32, device="ocl")
                    for turned in LAYOUTS[dtype] if name == "some" else [0]:
                        with self.subTest(form=form, ends=name, dtype=dtype, turned=turned):
                            left = columns_first(a) if turned & 1 else a
                            right = columns_first(b) if turned & 2 else b
                            left, right = [
                                x.to("ocl") if x.is_contiguous() else columns_first(x.to("ocl"))
                                for x in (left, right)
                            ]
                            self.near(grouped_mm(left, right, offs=offs), want, dtype)

    def test_as_on_the_cpu(self) -> None:
        """Also strides: rows of results begin at multiples of 16 bytes."""
        for form in ("2d-3d", "3d-2d", "2d-2d"):
            for dtype in LIMITS:
                with self.subTest(form=form, dtype=dtype):
                    a, b = factors(form, [24, 24, 64], 64, dtype)
                    offs = torch.tensor([24, 24, 64], dtype=torch.int32)
                    want = grouped_mm(a, b, offs=offs)
                    got = grouped_mm(a.to("ocl"), b.to("ocl"), offs=offs.to("ocl"))
                    self.near(got, want.double(), dtype)
                    self.assertEqual(got.stride(), want.stride())
        a, b = torch.randn(3, 8, 16), torch.randn(3, 16, 12)
        self.near(grouped_mm(a.to("ocl"), b.to("ocl")), a.double() @ b.double(), torch.float32)

    def test_larger_than_tiles(self) -> None:
        torch.manual_seed(2)
        ends = [3, 300, 300, 411, 640]
        offs = torch.tensor(ends, dtype=torch.int32, device="ocl")
        for dtype in (torch.float32, torch.bfloat16):
            a = torch.randn(640, 520).to(dtype)
            b = torch.randn(5, 520, 392).to(dtype)
            with self.subTest(dtype=dtype):
                got = grouped_mm(a.to("ocl"), b.to("ocl"), offs=offs)
                self.near(got, wanted("2d-3d", a, b, ends), dtype)
                weights = grouped_mm(a.to("ocl").t(), got, offs=offs)
                self.near(weights, wanted("2d-2d", a.t(), got.cpu(), ends), dtype)
        if IS_GPU_STYLE:
            chosen = ocl.last_choices()["matmul_grouped"]
            if chosen != "matmul_grouped.mma":  # an NVIDIA GPU has it without the setting
                self.assertFalse(HAS_UNITS)
                self.assertEqual(chosen, "matmul_grouped.tiles")

    @unittest.skipUnless(HAS_UNITS and IS_GPU_STYLE, "needs matrix units")
    def test_floats_as_two_numbers(self) -> None:
        """By three products of TF32 numbers, unless a number cannot be held by two of them."""
        ends, size = ENDS["some"]
        offs = torch.tensor(ends, dtype=torch.int32, device="ocl")
        for form in ("2d-3d", "3d-2d", "2d-2d"):
            for factor in (1, 1e-33, torch.inf):
                with self.subTest(form=form, factor=factor):
                    torch.manual_seed(5)
                    a, b = factors(form, ends, size, torch.float32)
                    a.view(-1)[33] = factor
                    # No line is cut into parts.
                    left = columns_first(a.to("ocl")) if form == "2d-2d" else a.to("ocl")
                    right = columns_first(b.to("ocl")) if form == "3d-2d" else b.to("ocl")
                    with ocl.algorithms_disabled("matmul_grouped.tiles"):
                        got = grouped_mm(left, right, offs=offs)
                    chosen = ocl.last_choices()["matmul_grouped"]
                    self.assertEqual(chosen, "matmul_grouped.mma_tf32x3")
                    want = wanted(form, a, b, ends)
                    if factor == torch.inf:
                        torch.testing.assert_close(got.cpu(), want.float(), equal_nan=True)
                    else:
                        self.near(got, want, torch.float32)

    def test_gradients(self) -> None:
        torch.manual_seed(3)
        ends = [16, 16, 40, 56]
        for transposed in (False, True):
            for dtype in LIMITS:
                with self.subTest(dtype=dtype, transposed=transposed):
                    x, w = torch.randn(56, 32).to(dtype), torch.randn(4, 32, 24).to(dtype)
                    g = torch.randn(56, 24).to(dtype)
                    grads = []
                    for device in ("cpu", "ocl"):
                        leaves = [t.to(device).requires_grad_() for t in (x, w)]
                        right = columns_first(leaves[1]) if transposed else leaves[1]
                        offs = torch.tensor(ends, dtype=torch.int32, device=device)
                        out = grouped_mm(leaves[0], right, offs=offs)
                        grads.append(torch.autograd.grad(out, leaves, g.to(device)))
                    for want, got in zip(*grads, strict=True):
                        self.near(got, want.double(), dtype)

    def test_ends_that_are_wrong(self) -> None:
        """They are found on the device; nothing outside of the operands is touched."""
        a, b = torch.ones(16, 8, device="ocl"), torch.ones(2, 8, 8, device="ocl")
        for ends in ([8, 20], [12, 4], [-3, 16]):
            with self.subTest(ends=ends):
                grouped_mm(a, b, offs=torch.tensor(ends, dtype=torch.int32, device="ocl"))
                with self.assertRaisesRegex(RuntimeError, "a part's end .* is less than the one"):
                    torch.ocl.synchronize()
        for offs in (torch.tensor([8, 16]), torch.tensor([[8, 16]], dtype=torch.int32)):
            with self.assertRaisesRegex(RuntimeError, "[Oo]ff"):
                grouped_mm(a, b, offs=offs.to("ocl"))

    def test_recorded(self) -> None:
        """Replays read the ends anew: other tokens go to other experts."""
        torch.manual_seed(4)
        x, w = torch.randn(48, 16), torch.randn(3, 16, 24)
        here, weights = x.to("ocl").requires_grad_(), w.to("ocl").requires_grad_()
        offs = torch.tensor([8, 24, 48], dtype=torch.int32, device="ocl")
        ones = torch.ones(48, 24, device="ocl")

        def step() -> list[torch.Tensor]:
            out = grouped_mm(here, weights, offs=offs)
            return [out, *torch.autograd.grad(out, (here, weights), ones)]

        step()
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            results = step()
        for ends in ([8, 24, 48], [0, 40, 48], [16, 16, 32]):
            offs.copy_(torch.tensor(ends, dtype=torch.int32))
            graph.replay()
            torch.ocl.synchronize()
            self.near(results[0].detach(), wanted("2d-3d", x, w, ends), torch.float32)
            mine = wanted("2d-2d", x.t(), torch.ones(48, 24), ends)
            self.near(results[2], mine, torch.float32)

    @unittest.skipIf(HAS_UNITS or IS_GPU_STYLE, "is run once")
    def test_matrix_units(self) -> None:
        settings = environment(optimised=False) | {"OCLTENSOR_NVIDIA_MMA": "emulated80"}
        tests = [
            word for name in ("forms", "larger", "gradients", "floats") for word in ("-k", name)
        ]
        run = subprocess.run(
            [sys.executable, __file__, *tests], env=settings, capture_output=True, text=True
        )
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
