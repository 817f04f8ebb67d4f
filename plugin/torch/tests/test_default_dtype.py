"""torch.set_default_dtype(): the type of integers beside fractions, on ocl as on the CPU."""

from __future__ import annotations

import unittest
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

DEFAULTS = (torch.float64, torch.bfloat16)
Function = Callable[[torch.Tensor], torch.Tensor]

# Functions of integers whose results have the default type, or one that depends on it.
FUNCTIONS: dict[str, Function] = {
    "sin": torch.sin,
    "erf": torch.erf,
    "sqrt": torch.sqrt,
    "log1p": torch.log1p,
    "angle": torch.angle,
    "special.entr": torch.special.entr,
    "bool": lambda x: (x > 2).exp(),
    "int8": lambda x: x.to(torch.int8).log(),
    "without dimensions": lambda x: x[2].exp(),
    "quotient": lambda x: x / 3,
    "quotient of two": lambda x: x / (x + 1),
    "rounded": lambda x: torch.div(x, 0.7, rounding_mode="floor"),
    "two": lambda x: torch.atan2(x, x.to(torch.int16) + 1),
    "one is float32": lambda x: torch.atan2(x, x.float()),
    "number": lambda x: x * 0.1,
    "number first": lambda x: 0.1 - x,
    "power": lambda x: x**0.3,
    "base": lambda x: 0.3**x,
    "remainder": lambda x: torch.remainder(x, 0.3),
    "bounds": lambda x: torch.clamp(x, 1.1, 3.3),
    "one bound": lambda x: torch.clamp(x, max=3.3),
    "compared": lambda x: (x / 3) == (x * 0.25),
    "with a number": lambda x: x > 2.7,
    "chosen": lambda x: torch.where(x > 2, x, 0.1),
    "chosen numbers": lambda x: torch.where(x > 2, 0.1, 3),
    "chosen complex": lambda x: torch.where(x > 2, 0.1, 3j),
    "filled": lambda x: x.masked_fill(x > 2, 7),
    "scalar tensor": lambda x: x * torch.tensor(0.1, dtype=torch.float32),
    "wide scalar tensor": lambda x: x * torch.tensor(0.1, dtype=torch.float64),
    "whole scalar tensor": lambda x: x / torch.tensor(3, dtype=torch.int16),
    "mean of quotients": lambda x: (x / 7).mean(),
    "covariance": lambda x: torch.cov(torch.stack([x, x * x])),
}


class DefaultType(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())

    def same(self, function: Function, x: torch.Tensor) -> None:
        wanted, mine = function(x), function(x.to("ocl"))
        self.assertEqual((mine.device.type, mine.dtype), ("ocl", wanted.dtype))
        # Both compute in the result's type, half types in float32: a few roundings each.
        eps = 0.0
        if wanted.is_floating_point() or wanted.is_complex():
            eps = torch.finfo(wanted.dtype).eps
        torch.testing.assert_close(mine.cpu(), wanted, rtol=8 * eps, atol=8 * eps)

    def test_functions_of_integers(self) -> None:
        for default in DEFAULTS:
            torch.set_default_dtype(default)
            for name, function in FUNCTIONS.items():
                if name == "covariance" and default == torch.bfloat16:
                    continue  # a product of matrices: other roundings
                with self.subTest(name=name, default=default):
                    self.same(function, torch.arange(1, 6))

    def test_complex_numbers(self) -> None:
        for default in (torch.float64, torch.float32):
            torch.set_default_dtype(default)
            with self.subTest(default=default):
                self.same(lambda x: x * (1 + 2j), torch.arange(1, 6))

    def test_integers_keep_their_type_in_place(self) -> None:
        torch.set_default_dtype(torch.float64)
        x = torch.arange(4, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "can't be cast"):
            x.mul_(0.5)
        x.mul_(2)
        self.assertEqual(x.cpu().tolist(), [0, 2, 4, 6])

    def test_given_output(self) -> None:
        torch.set_default_dtype(torch.float64)
        x = torch.arange(1, 5, device="ocl")
        out = torch.empty(4, dtype=torch.float32, device="ocl")
        torch.sin(x, out=out)
        torch.testing.assert_close(out.cpu(), torch.arange(1, 5).sin().float(), rtol=2e-7, atol=0)

    def test_complex_of_parts(self) -> None:
        for kind in (torch.float64, torch.float32):
            parts = torch.randn(5, dtype=kind), torch.randn(5, dtype=kind)
            ours = [t.to("ocl") for t in parts]
            self.assertTrue(torch.equal(torch.complex(*ours).cpu(), torch.complex(*parts)))
            # cos and sin are exact to some units in the last place on both devices
            tight = {"rtol": 0, "atol": 16 * torch.finfo(kind).eps}
            torch.testing.assert_close(torch.polar(*ours).cpu(), torch.polar(*parts), **tight)
        half = torch.randn(5).half()
        mine = torch.complex(half.to("ocl"), half.to("ocl"))
        self.assertEqual(mine.dtype, torch.complex32)
        self.assertTrue(torch.equal(torch.view_as_real(mine.cpu()), torch.stack([half, half], -1)))
        for wrong in (torch.float64, torch.int64):
            for device in ("cpu", "ocl"):
                one = torch.ones(2, device=device)
                with self.assertRaisesRegex(RuntimeError, "Expected (both inputs|object)"):
                    torch.complex(one, one.to(wrong))


if __name__ == "__main__":
    unittest.main()
