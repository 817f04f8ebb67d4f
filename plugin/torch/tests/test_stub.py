"""Operators that ATen composes for its own devices alone: Kaiser's window, shifts, conjugation, and
what reads on the host."""

import os
import subprocess
import sys
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)

# They read what they are given without asking where it lies.
HOST_READERS = """
import torch, torch_ocl
state = torch.zeros(3, 30, dtype=torch.long, device="ocl")
numbers = torch.zeros(3, dtype=torch.long, device="ocl")
squares = torch.ones(3, 30, 30, dtype=torch.long, device="ocl")
x, grid = torch.rand(1, 2, 3, 4, device="ocl"), torch.rand(1, 3, 4, 2, device="ocl") * 2 - 1
aten = torch.ops.aten
calls = {
    "_sobol_engine_initialize_state_": lambda: torch._sobol_engine_initialize_state_(state, 3),
    "_sobol_engine_scramble_": lambda: torch._sobol_engine_scramble_(state, squares, 3),
    "_sobol_engine_ff_": lambda: torch._sobol_engine_ff_(numbers, 2, state, 3, 0),
    "_sobol_engine_draw":
        lambda: torch._sobol_engine_draw(numbers, 2, state, 3, 0, torch.float32)[0],
    "choose_qparams_optimized":
        lambda: torch.choose_qparams_optimized(x.flatten(), 24, 10, 0.5, 8)[0],
    "_reshape_from_tensor":
        lambda: aten._reshape_from_tensor(x, torch.tensor([4, 6], device="ocl")),
    "_saturate_weight_to_fp16": lambda: aten._saturate_weight_to_fp16(x[0, 0] * 1e6),
    "_grid_sampler_2d_cpu_fallback":
        lambda: aten._grid_sampler_2d_cpu_fallback(x, grid, 0, 0, False),
    "_grid_sampler_2d_cpu_fallback_backward":
        lambda: aten._grid_sampler_2d_cpu_fallback_backward(x, x, grid, 0, 0, False)[0],
    "range.out_": lambda: aten.range.out_(0, 3, out=torch.rand(4, device="ocl")),
}
for name, call in calls.items():
    try:
        print(name, "on", call().device)
    except NotImplementedError as error:
        text = str(error)
        declined = "OCLTENSOR_ENABLE_FALLBACK=1" in text and "aten::" in text
        print(name, "declined" if declined else text)
"""


def answers(fallback: str) -> list[str]:
    env = dict(os.environ, OCLTENSOR_ENABLE_FALLBACK=fallback)
    command = [sys.executable, "-W", "ignore", "-c", HOST_READERS]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800)
    return (
        run.stdout.splitlines()
        if run.returncode == 0
        else [f"exit {run.returncode}: {run.stderr[-300:]}"]
    )


class Shifts(unittest.TestCase):
    def test_numbers_and_tensors(self) -> None:
        for dtype in INTEGERS:
            low = 0 if dtype == torch.uint8 else -9
            x = torch.arange(low, 12, 3).to(dtype)
            y = torch.tensor([0, 1, 2, 70, 3, 5, 1, 2, 4]).to(dtype)[: len(x)]
            for other in (1, 3, 0, 70, -1, y, y.long()):
                there = other.to("ocl") if isinstance(other, torch.Tensor) else other
                for name in ("__lshift__", "__rshift__"):
                    with self.subTest(dtype=dtype, name=name, other=other):
                        want, got = getattr(x, name)(other), getattr(x.to("ocl"), name)(there)
                        self.assertEqual(
                            (got.dtype, got.cpu().tolist()), (want.dtype, want.tolist())
                        )

    def test_operators(self) -> None:
        x = torch.tensor([[8, 5], [1, 64]], device="ocl")
        self.assertEqual(
            ((x << 1).tolist(), (x >> 1).tolist()), ([[16, 10], [2, 128]], [[4, 2], [0, 32]])
        )
        self.assertEqual(((1 << x[:, 1]) >> 2).tolist(), [8, 0])
        view = x.t()[0]
        view <<= 2
        self.assertEqual(x.tolist(), [[32, 5], [4, 64]])
        view >>= torch.tensor([1, 2], device="ocl")
        self.assertEqual(x.tolist(), [[16, 5], [1, 64]])
        self.assertEqual((torch.tensor([True, False], device="ocl") << 1).tolist(), [2, 0])
        self.assertEqual((x[:0] << 1).shape, (0, 2))

    def test_what_cannot_be_shifted(self) -> None:
        for call in (
            lambda: torch.ones(2, device="ocl") << 1,
            lambda: torch.ones(2, dtype=torch.int32, device="ocl") >> 1.5,
        ):
            with self.assertRaisesRegex(
                RuntimeError, "bitwise_(left|right)_shift.* needs integer operands"
            ):
                call()
        flags = torch.ones(2, dtype=torch.bool, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "can't be cast"):
            flags <<= 1


class Windows(unittest.TestCase):
    def test_kaiser(self) -> None:
        for dtype, limit in (
            (torch.float64, 1e-14),
            (torch.float32, 2e-6),
            (torch.float16, 1e-3),
            (torch.bfloat16, 8e-3),
        ):
            for length in (0, 1, 2, 16, 33):
                for options in (
                    {},
                    {"periodic": False},
                    {"periodic": True, "beta": 5.5},
                    {"periodic": False, "beta": 0.0},
                ):
                    with self.subTest(dtype=dtype, length=length, **options):
                        got = torch.kaiser_window(length, **options, dtype=dtype, device="ocl")
                        want = torch.kaiser_window(length, **options, dtype=torch.float64)
                        self.assertEqual(
                            (got.shape, got.dtype, got.device.type), (want.shape, dtype, "ocl")
                        )
                        self.assertLessEqual(
                            (got.cpu().double() - want).abs().max().item() if length else 0, limit
                        )

    def test_kaiser_of_the_default_type_and_given(self) -> None:
        self.assertEqual(torch.kaiser_window(4, device="ocl").dtype, torch.float32)
        out = torch.empty(0, dtype=torch.float64, device="ocl")
        self.assertEqual(torch.ops.aten.kaiser_window.out(5, out=out).shape, (5,))
        with self.assertRaisesRegex(RuntimeError, "non-negative"):
            torch.kaiser_window(-1, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "floating point"):
            torch.kaiser_window(4, dtype=torch.int64, device="ocl")


class Conjugation(unittest.TestCase):
    def test_in_place(self) -> None:
        x = torch.tensor([[1 + 2j, -3j], [2, 1 - 1j]], dtype=torch.complex64)
        ours = x.to("ocl")
        self.assertIs(ours.conj_physical_(), ours)
        self.assertEqual(ours.tolist(), x.conj().tolist())
        ours.t()[0].conj_physical_()
        self.assertEqual(ours.tolist(), [[1 + 2j, 3j], [2, 1 + 1j]])
        real = torch.ones(3, device="ocl")
        self.assertEqual(real.conj_physical_().tolist(), [1, 1, 1])


class HostReaders(unittest.TestCase):
    def test_are_declined(self) -> None:
        lines = answers("0")
        self.assertEqual({line.split()[-1] for line in lines}, {"declined"}, lines)
        self.assertEqual(len(lines), 10)

    def test_run_on_the_cpu_where_that_is_allowed(self) -> None:
        lines = answers("1")
        self.assertEqual({line.split()[-1] for line in lines}, {"ocl:0"}, lines)


if __name__ == "__main__":
    unittest.main()
