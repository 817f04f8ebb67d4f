"""Simulated quantisation against torch's CPU."""

import math
import unittest

import torch
import torch_ocl  # noqa: F401

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def numbers(dtype: torch.dtype = torch.float32, shape=(6, 5)) -> torch.Tensor:
    """Numbers that no step of 0.05 rounds by a hair: ties are decided in the last bit."""
    return (torch.randint(-120, 320, shape) * 0.05 + torch.rand(shape) * 0.02).to(dtype)


class Case(unittest.TestCase):
    def same(self, call, *tensors, exact=True) -> None:
        want = call(*tensors)
        got = call(*(t.to("ocl") for t in tensors))
        if isinstance(want, torch.Tensor):
            want, got = (want,), (got,)
        for a, b in zip(got, want, strict=True):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            # Factors are the same float32 numbers; their products differ by a rounding or two.
            eps = torch.finfo(b.dtype).eps if b.is_floating_point() else 0
            torch.testing.assert_close(
                a.cpu(), b, rtol=4 * eps if exact else 1e-4, atol=4 * eps if exact else 1e-4
            )


class PerTensor(Case):
    def test_values(self) -> None:
        torch.manual_seed(1)
        op = torch.ops.aten.fake_quantize_per_tensor_affine_cachemask
        for dtype in TYPES:
            for scale, zero, low, high in (
                (0.05, 0, -128, 127),
                (0.1, 40, 0, 255),
                (0.3, 7, 0, 15),
            ):
                with self.subTest(dtype=dtype, scale=scale):
                    self.same(lambda x: op(x, scale, zero, low, high), numbers(dtype))
        self.same(lambda x: op(x, 0.1, 0, 0, 255), torch.rand(0, 3))
        self.same(lambda x: op(x, 0.1, 0, 0, 255), numbers().t())

    def test_special_values(self) -> None:
        x = torch.tensor([math.nan, math.inf, -math.inf, 1e30])
        got = torch.fake_quantize_per_tensor_affine(x.to("ocl"), 0.5, 3, 0, 7).tolist()
        self.assertEqual(got, [-1.5, 2.0, -1.5, 2.0])

    def test_gradient(self) -> None:
        torch.manual_seed(2)
        grads = []
        x = numbers()
        for device in ("cpu", "ocl"):
            y = x.clone().to(device).requires_grad_()
            torch.fake_quantize_per_tensor_affine(y, 0.05, 3, 0, 255).square().sum().backward()
            grads.append(y.grad.cpu())
        torch.testing.assert_close(grads[1], grads[0])

    def test_tensor_parameters(self) -> None:
        torch.manual_seed(3)
        op = torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        for enabled in (1, 0):
            self.same(
                lambda x, s, z, e: op(x, s, z, e, 0, 255),
                numbers(),
                torch.tensor([0.05]),
                torch.tensor([17], dtype=torch.int32),
                torch.tensor([enabled]),
            )

    def test_errors(self) -> None:
        x = torch.ones(3, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "`zero_point` must be between"):
            torch.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255)
        with self.assertRaisesRegex(RuntimeError, "`quant_min` should be less than"):
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 255, 0)


class PerChannel(Case):
    def test_values(self) -> None:
        torch.manual_seed(4)
        op = torch.ops.aten.fake_quantize_per_channel_affine_cachemask
        for dtype in TYPES[:1]:
            for kind in (torch.int32, torch.float32):
                for axis in (0, 1):
                    with self.subTest(dtype=dtype, kind=kind, axis=axis):
                        n = (6, 5)[axis]
                        zero = torch.randint(0, 90, (n,)).to(kind) + (
                            0.25 if kind.is_floating_point else 0
                        )
                        self.same(
                            lambda x, s, z, axis=axis: op(x, s, z, axis, 0, 100),
                            numbers(dtype),
                            torch.rand(n) + 0.05,
                            zero.to(kind),
                        )

    def test_errors(self) -> None:
        x, one = torch.ones(3, 2, device="ocl"), torch.ones(3, device="ocl")
        call = torch.fake_quantize_per_channel_affine
        for text, arguments in (
            ("Zero-point must be Int32", (one, one.long(), 0, 0, 255)),
            ("Scale must be Float", (one.double(), one.int(), 0, 0, 255)),
            ("not consistent", (one[:2], one.int()[:2], 0, 0, 255)),
            ("must be between", (one, one.int() + 300, 0, 0, 255)),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(RuntimeError, text):
                call(x, *arguments)
        with self.assertRaises(IndexError):
            call(x, one, one.int(), 2, 0, 255)


class Learned(Case):
    def test_values_and_gradients(self) -> None:
        torch.manual_seed(5)
        x, dy = numbers(), torch.randn(6, 5)
        per_tensor = torch.ops.aten._fake_quantize_learnable_per_tensor_affine
        back = torch.ops.aten._fake_quantize_learnable_per_tensor_affine_backward
        scale, zero = torch.tensor([0.05]), torch.tensor([20.4])
        self.same(lambda *t: per_tensor(*t, 0, 255, 1.0), x, scale, zero)
        self.same(lambda *t: back(*t, 0, 255, 0.5), dy, x, scale, zero, exact=False)
        per_channel = torch.ops.aten._fake_quantize_learnable_per_channel_affine
        back = torch.ops.aten._fake_quantize_learnable_per_channel_affine_backward
        for axis, n in ((0, 6), (1, 5)):
            scale, zero = torch.rand(n) * 0.1 + 0.03, torch.rand(n) * 50
            self.same(lambda *t, a=axis: per_channel(*t, a, 0, 255, 1.0), x, scale, zero)
            self.same(lambda *t, a=axis: back(*t, a, 0, 255, 0.5), dy, x, scale, zero, exact=False)


class Observed(Case):
    def test_moving_average(self) -> None:
        torch.manual_seed(6)
        for per_row in (False, True):
            for symmetric in (False, True):
                for observe, quantise in ((1, 1), (1, 0), (0, 1)):
                    with self.subTest(per_row=per_row, symmetric=symmetric, observe=observe):
                        self.step(per_row, symmetric, observe, quantise)

    def step(self, per_row: bool, symmetric: bool, observe: int, quantise: int) -> None:
        low, high = (-128, 127) if symmetric else (0, 255)
        states = []
        batches = [numbers() for _ in range(3)]
        for device in ("cpu", "ocl"):
            n = 6 if per_row else 1
            state = [
                torch.full((n,), math.inf, device=device),
                torch.full((n,), -math.inf, device=device),
                torch.ones(n, device=device),
                torch.zeros(n, dtype=torch.int32, device=device),
            ]
            on = [torch.tensor([k], device=device) for k in (observe, quantise)]
            outs = []
            for x in batches:
                outs += torch.ops.aten._fused_moving_avg_obs_fq_helper(
                    x.to(device), *on, *state, 0.3, low, high, 0, per_row, symmetric
                )
            states.append([t.cpu() for t in outs + state])
        for a, b in zip(states[1], states[0], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
