"""What Inductor refuses for ocl is traced once, whoever catches the refusal and goes on."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from unittest import mock

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch._dynamo.utils import counters

TEXT = "^NotImplementedError: ocl: .*backend='aot_eager'"


def falling_back(function: Callable) -> Callable:
    """As libraries do it that would like compiled code."""
    compiled = torch.compile(function)

    @functools.wraps(function)
    def call(*arguments):
        try:
            return compiled(*arguments)
        except Exception:
            return function(*arguments)

    return call


@falling_back
def dequantized(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (codes.float() - 8) * scales.repeat_interleave(4)


@falling_back
def updated(weight: torch.Tensor, grad: torch.Tensor, state: torch.Tensor, step: int) -> None:
    state.mul_(0.9).add_(grad, alpha=0.1)
    weight.sub_(state / (1 - 0.9**step))


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("codes", torch.arange(16, dtype=torch.uint8))
        self.register_buffer("scales", torch.tensor([0.5, 1.0, 2.0, 4.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * dequantized(self.codes, self.scales)


class Refused(unittest.TestCase):
    def setUp(self) -> None:
        torch._dynamo.reset()
        counters.clear()

    def traces(self) -> int:
        return counters["frames"]["total"]

    def test_ten_calls(self) -> None:
        compiled = torch.compile(lambda x: x.sin() + 1)
        for _ in range(10):
            with self.assertRaisesRegex(NotImplementedError, TEXT):
                compiled(torch.ones(4, device="ocl"))
            self.assertEqual(self.traces(), 1)
        with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, TEXT):
            compiled(torch.ones(4, device="ocl"))

    def test_training(self) -> None:
        model = torch.nn.Linear(3, 2).to("ocl")
        compiled = torch.compile(model)
        for _ in range(10):
            with self.assertRaisesRegex(NotImplementedError, TEXT):
                compiled(torch.ones(4, 3, device="ocl")).sum().backward()
        self.assertEqual(self.traces(), 1)

    def test_a_layer(self) -> None:
        layer = Layer()
        x = torch.arange(16.0)
        wanted = x * dequantized.__wrapped__(layer.codes, layer.scales)
        layer.to("ocl")
        for _ in range(10):
            self.assertTrue(torch.equal(layer(x.to("ocl")).cpu(), wanted))
        self.assertEqual(self.traces(), 1)

    def test_an_optimizer(self) -> None:
        def run(device: str, update: Callable) -> list[torch.Tensor]:
            weight, state = torch.ones(5, device=device), torch.zeros(5, device=device)
            for step in range(1, 11):
                update(weight, torch.full((5,), step / 8, device=device), state, step)
            return [weight.cpu(), state.cpu()]

        mine = run("ocl", updated)
        self.assertLessEqual(self.traces(), 2)  # for one step, and for any step
        for a, b in zip(mine, run("cpu", updated.__wrapped__), strict=True):
            torch.testing.assert_close(a, b)

    def test_the_cpu_compiles_in_between(self) -> None:
        compiled = torch.compile(lambda x: x * 2 + 1)
        made = []

        def compile_fx(graph, inputs, **_):  # needs no C++ compiler, as Inductor does
            made.append(graph)
            return graph.forward

        with mock.patch("torch._inductor.compile_fx.compile_fx", compile_fx):
            for i in range(10):
                x = torch.full((4,), float(i))
                self.assertEqual(compiled(x).tolist(), [2 * i + 1] * 4)
                with self.assertRaisesRegex(NotImplementedError, TEXT):
                    compiled(x.to("ocl"))
        self.assertEqual((len(made), self.traces()), (1, 2))

    def test_the_advised_backend_after_a_refusal(self) -> None:
        def function(x):
            return x * 3

        with self.assertRaisesRegex(NotImplementedError, TEXT):
            torch.compile(function)(torch.ones(2, device="ocl"))
        for backend in ("eager", "aot_eager"):
            got = torch.compile(function, backend=backend)(torch.ones(2, device="ocl"))
            self.assertEqual(got.tolist(), [3, 3])

    def test_suppressed_errors(self) -> None:
        compiled = torch.compile(lambda x: x - 1)
        with (
            torch._dynamo.config.patch(suppress_errors=True),
            self.assertLogs("torch._dynamo.convert_frame", "WARNING") as logged,
        ):
            for _ in range(10):
                self.assertEqual(compiled(torch.ones(3, device="ocl")).tolist(), [0, 0, 0])
        self.assertEqual((len(logged.output), self.traces()), (1, 1))


if __name__ == "__main__":
    unittest.main()
