"""torch.compile: plans against the generated Python that they take the place of, bit for bit, and
which lines become steps."""

from __future__ import annotations

import random
import unittest
from typing import Any
from unittest import mock

import random_programs
import torch
import torch.nn.functional as F
from compile_case import CompileCase, to_ocl
from gpu_style import some
from plan_case import PlanCase
from torch._inductor import config
from torch_ocl import _C
from torch_ocl.inductor import plan as plans
from torch_ocl.inductor.plan_numbers import program

PROGRAMS = some(60)


class Bits(PlanCase):
    def test_drawn_programs(self) -> None:
        for seed in range(1000, 1000 + PROGRAMS):
            with self.subTest(seed=seed):
                drawn = random_programs.draw(seed)
                torch._dynamo.reset()
                compiled = torch.compile(drawn.function(), dynamic=drawn.is_dynamic, fullgraph=True)
                compiled(*drawn.inputs("ocl"))
        self.assertGreaterEqual(self.calls, PROGRAMS // 2)

    def test_training(self) -> None:
        """Forward and backward: convolutions, statistics that change, dropout, views, products."""
        torch.manual_seed(5)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(128, 20),
            torch.nn.Dropout(),
            torch.nn.GELU(),
            torch.nn.Linear(20, 5),
        ).to("ocl")
        compiled = torch.compile(model)
        for _ in range(3):
            x = torch.randn(4, 3, 8, 8, device="ocl", requires_grad=True)
            F.cross_entropy(compiled(x), torch.tensor([0, 1, 2, 3], device="ocl")).backward()
        self.assertEqual(self.calls, 6)
        self.assertEqual(self.summary().python, [])

    def test_attention(self) -> None:
        def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            q, k, v = (x @ w).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4).unbind()
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + y.transpose(1, 2).flatten(2)

        x, w = to_ocl([torch.randn(2, 9, 32), torch.randn(32, 96) / 5])
        for dynamic in (False, True):
            torch._dynamo.reset()
            torch.compile(layer, dynamic=dynamic)(x, w)
            self.assertEqual(self.summary().python, [])
        self.assertEqual(self.calls, 2)

    def test_an_optimizer(self) -> None:
        layers = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Linear(5, 3)).to("ocl")
        for parameter in layers.parameters():
            parameter.grad = torch.randn_like(parameter)
        own = torch.optim.AdamW(layers.parameters(), lr=0.01)
        step = torch.compile(own.step)
        for _ in range(3):
            step()
        self.assertGreaterEqual(self.calls, 3)

    def test_constants(self) -> None:
        """They are given to the module when it has been loaded."""

        def function(x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="ocl")).sin()

        x = torch.randn(5, 2, device="ocl")
        want = (x.cpu() @ torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sin()
        torch.testing.assert_close(torch.compile(function)(x).cpu(), want)
        self.assertEqual(self.calls, 1)

    def test_sizes_that_vary(self) -> None:
        """With a plan for all of them, whose numbers are computed."""

        def function(x: torch.Tensor, y: torch.Tensor) -> Any:
            n = x.shape[0]
            joined = torch.cat([x, y], 0)[n // 2 : -(n % 3) - 1]
            return joined.softmax(0) @ joined.t(), x.new_empty(max(n, 7) * 2).fill_(n), n * 3 - 1

        compiled = torch.compile(function, dynamic=True)
        for n in (5, 8, 13, 31):
            x, y = torch.randn(n, 6).to("ocl"), torch.randn(2 * n + 1, 6).to("ocl")
            *got, number = compiled(x, y)
            *want, same = function(x.cpu(), y.cpu())
            self.close(got, want, 2e-5, 2e-5)
            self.assertEqual(number, same)
        self.assertGreater(self.calls, 3)


class Steps(PlanCase):
    @unittest.skipIf(torch.ocl.device_count() > 1, "has steps that change the device, too")
    def test_kinds(self) -> None:
        x, w, b = to_ocl([torch.randn(8, 48), torch.randn(48, 48), torch.randn(48)])
        torch.compile(lambda x, w, b: F.layer_norm(x @ w + b, (48,)).relu() + x)(x, w, b)
        wanted = {"check_sizes": 3, "allocate": 2, "call": 1, "free": 3, "launch": 1}
        self.assertEqual((self.summary().steps, self.summary().python), (wanted, []))

    def test_lines_of_python(self) -> None:
        """A number of the host's is read by a line of Python, between steps."""
        with config.patch(fallback_random=True):
            scale = torch.tensor(3.0)
            got = torch.compile(lambda x, s: (x * s).softmax(-1))(
                torch.arange(6.0).view(2, 3).to("ocl"), scale
            )
        want = (torch.arange(6.0).view(2, 3) * 3).softmax(-1)
        torch.testing.assert_close(got.cpu(), want)
        self.assertTrue(any(".to(" in line for line in self.summary().python), self.summary())
        self.assertIn("launch", self.summary().steps)

    def test_what_is_no_plan(self) -> None:
        """Branches: that graph runs as generated Python."""

        def function(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x * 2, (x,)) + 1

        for value in (-1.0, 2.0):
            x = torch.full((3,), value)
            got = torch.compile(function)(x.to("ocl"))
            torch.testing.assert_close(got.cpu(), function(x))
        self.assertRegex(torch.ocl.compile_report()[-1].plan, "^no step for: ")

    def test_arguments_of_operators(self) -> None:
        """Sizes that vary, alone and in lists; lists of tensors; results that an operator lacks."""

        def function(x: torch.Tensor, w: torch.Tensor, i: torch.Tensor) -> Any:
            n = x.shape[0]
            y = F.conv2d(x, w, padding=1)
            grads = torch.ops.aten.convolution_backward(
                y.sin(), x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]
            )
            z = torch.ops.aten._adaptive_avg_pool2d(y, [3, 2]).cumsum(0)
            at = z.new_zeros(n, 4, 3, 2).index_put([i, i % 4], z[:, 0], accumulate=True)
            wide = F.interpolate(y, size=(n + 1, 2 * n), mode="bicubic")
            parts = torch.ops.aten.split_with_sizes_copy(wide.cumsum(-1), [n, n], -1)
            return grads[1], at, parts[1] * 2

        compiled = torch.compile(function, dynamic=True)
        for n in (3, 5):
            x, w = torch.randn(n, 3, 8, 8), torch.randn(4, 3, 3, 3)
            given = x, w, torch.arange(n) % 3
            want, got = function(*given), compiled(*to_ocl(given))
            self.close(got, want, 2e-4, 2e-4)
        self.assertGreaterEqual(self.calls, 2)
        self.assertGreaterEqual(self.summary().steps["call"], 4)
        self.assertEqual(self.summary().python, [])

    def test_an_operator_without_a_schema_of_ours(self) -> None:
        """Operators of Python are called, and may fail with their own error."""

        @torch.library.custom_op("ocl_plan_test::twice", mutates_args=())
        def twice(x: torch.Tensor, names: list[int]) -> torch.Tensor:
            if x.shape[0] == 3:
                raise KeyError("no three")
            return x * 2 + len(names)

        @twice.register_fake
        def _(x: torch.Tensor, names: list[int]) -> torch.Tensor:
            return torch.empty_like(x)

        compiled = torch.compile(lambda x: twice(x.sin(), [4, 5]) + 1, dynamic=True)
        got = compiled(torch.zeros(4, device="ocl"))
        self.assertEqual(got.tolist(), [3.0] * 4)
        self.assertIn("call", self.summary().steps)
        with self.assertRaisesRegex(KeyError, "no three"):
            self.graphs[-1]([3, torch.zeros(3, device="ocl")])


class Numbers(unittest.TestCase):
    def test_drawn_programs(self) -> None:
        """Programs of integers are Python's, whatever the signs."""
        import ast

        draw = random.Random(2)

        def drawn(depth: int) -> str:
            if depth == 0 or draw.random() < 0.2:
                return draw.choice(["a", "b", str(draw.randrange(-9, 10)), "7"])
            one, two = drawn(depth - 1), drawn(depth - 1)
            kind = draw.choice(["+", "-", "*", "//", "%", "min", "max", "neg"])
            if kind == "neg":
                return f"(-({one}))"
            return f"{kind}({one}, {two})" if kind.isalpha() else f"(({one}) {kind} ({two}))"

        seen = 0
        for _ in range(400):
            text, (a, b) = drawn(4), (draw.randrange(-50, 50), draw.randrange(1, 50))
            plan = _C.Plan()
            plan.take([0, 1])
            plan.compute(2, program(ast.parse(text, mode="eval").body, {"a": 0, "b": 1}))
            plan.give([(2, None), (-1, True)])
            run = plan.finish(3, lambda arguments: self.fail("Python was called"))
            try:
                want = eval(text, {"a": a, "b": b})
            except ZeroDivisionError:
                with self.assertRaises(ZeroDivisionError):
                    run([a, b])
                continue
            number, constant = run([a, b])
            self.assertEqual(number, want, text)
            self.assertIs(constant, True)
            seen += 1
        self.assertGreater(seen, 200)

    def test_what_has_more_than_64_bits(self) -> None:
        plan = _C.Plan()
        plan.take([0])
        plan.compute(1, [("value", 0), ("value", 0), ("*", 0)])
        plan.give([(1, None)])
        run = plan.finish(2, lambda arguments: arguments)
        with self.assertRaisesRegex(ValueError, "over 64 bits"):
            run([1 << 40])
        self.assertEqual(run([1 << 80]), [1 << 80])  # by Python


class Setting(CompileCase):
    def test_off(self) -> None:
        setting = _C.get_setting
        off = mock.patch.object(
            _C, "get_setting", lambda name: "0" if name == plans.SETTING else setting(name)
        )
        with off:
            got = torch.compile(lambda x: x.cos() * 7)(torch.zeros(2, device="ocl"))
        self.assertEqual(got.tolist(), [7.0, 7.0])
        self.assertEqual(torch.ocl.compile_report()[-1].plan, "OCLTENSOR_COMPILE_PLAN=0")


if __name__ == "__main__":
    unittest.main()
