"""Zeros without memory (ZeroTensor), as forward-mode derivatives have them, are zeros on ocl."""

import unittest
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
N = 4


def square(t: torch.Tensor) -> torch.Tensor:
    return t.expand(N, N)


FUNCTIONS: dict[str, Function] = {
    "dot": torch.dot,
    "vdot": torch.vdot,
    "inner": torch.inner,
    "mv": lambda a, b: square(a) @ b,
    "mm": lambda a, b: square(a) @ square(b),
    "bmm": lambda a, b: torch.bmm(square(a)[None], square(b)[None]),
    "addmm": lambda a, b: torch.addmm(square(b), square(a), square(b)),
    "baddbmm": lambda a, b: torch.baddbmm(square(a)[None], square(b)[None], square(b)[None]),
    "addmv": lambda a, b: torch.addmv(a, square(b), b),
    "linear": lambda a, b: torch.nn.functional.linear(a[None], square(b)),
    "mul": torch.mul,
    "add": torch.add,
    "where": lambda a, b: torch.where(b.abs() > 1, a, b),
    "cat": lambda a, b: torch.cat([b, a]),
    "foreach": lambda a, b: torch._foreach_add([b], [a])[0],
    "cross": lambda a, b: torch.linalg.cross(a[:3], b[:3]),
    "index": lambda a, b: a[torch.tensor([1, 0], device=b.device)] + b[:2],
    "index_put": lambda a, b: b.index_put((torch.tensor([1], device=b.device),), a[:1]),
    "copy_": lambda a, b: b.clone().copy_(a),
    "sum": lambda a, b: a.sum() + b.sum(),
    "clone": lambda a, b: a.clone(),
}


class ZeroTensors(unittest.TestCase):
    def test_are_zeros(self) -> None:
        for dtype in (torch.float32, torch.complex64):
            b = torch.randn(N, dtype=dtype, generator=torch.Generator().manual_seed(3))
            for name, function in FUNCTIONS.items():
                zero = torch._efficientzerotensor(N, dtype=dtype, device="ocl")
                with self.subTest(name, dtype=dtype):
                    for ours, theirs in (
                        (function(zero, b.to("ocl")), function(torch.zeros_like(b), b)),
                        (function(zero, zero), function(torch.zeros_like(b), torch.zeros_like(b))),
                    ):
                        self.assertEqual(ours.device.type, "ocl")
                        torch.testing.assert_close(ours.clone().cpu(), theirs)

    def test_numbers(self) -> None:
        zero = torch._efficientzerotensor(N, device="ocl")
        self.assertEqual((zero[1].item(), zero.tolist(), zero.cpu().sum().item()), (0, [0] * N, 0))

    def test_cannot_be_written(self) -> None:
        plain = torch.ones(N, device="ocl")
        for write in (
            lambda zero: zero.add_(1),
            lambda zero: zero.fill_(1),
            lambda zero: zero.copy_(plain),
            lambda zero: torch.mul(plain, plain, out=zero),
            lambda zero: torch._foreach_add_([zero], 1),
        ):
            zero = torch._efficientzerotensor(N, device="ocl")
            with self.assertRaisesRegex(RuntimeError, "ZeroTensors are immutable"):
                write(zero)

    def test_forward_mode(self) -> None:
        """One tangent is absent at a time; the products of vectors ended the process."""
        for dtype in (torch.float64, torch.complex128):
            numbers = [
                torch.randn(3, dtype=dtype, device="ocl", requires_grad=True) for _ in range(2)
            ]
            for function in (torch.matmul, torch.dot, torch.vdot, torch.linalg.cross, torch.mul):
                with self.subTest(function.__name__, dtype=dtype):
                    self.assertTrue(
                        torch.autograd.gradcheck(
                            function, numbers, check_forward_ad=True, check_backward_ad=False
                        )
                    )


if __name__ == "__main__":
    unittest.main()
