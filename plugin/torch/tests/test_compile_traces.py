"""What is compiled for ocl is traced once, and not again at each call: ten calls of a layer, a
training step, an optimizer, and of a graph that the compiler refuses."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Callable
from unittest import mock

import torch
from compile_case import NOT_COMPILED, CompileCase
from torch._dynamo.utils import counters

CALLS = 10


def dequantized(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (codes.float() - 8) * scales.repeat_interleave(4)


def updated(weight: torch.Tensor, grad: torch.Tensor, state: torch.Tensor, step: int) -> None:
    state.mul_(0.9).add_(grad, alpha=0.1)
    weight.sub_(state / (1 - 0.9**step))


class Layer(torch.nn.Module):
    """As libraries of quantised layers write it: a function is compiled, not the model."""

    def __init__(self, dequantize: Callable) -> None:
        super().__init__()
        self.register_buffer("codes", torch.arange(16, dtype=torch.uint8))
        self.register_buffer("scales", torch.tensor([0.5, 1.0, 2.0, 4.0]))
        self.dequantize = dequantize

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.dequantize(self.codes, self.scales)


class Traced(CompileCase):
    def setUp(self) -> None:
        super().setUp()
        counters.clear()

    def traces(self) -> int:
        return counters["frames"]["total"]

    def test_a_layer(self) -> None:
        x = torch.arange(16.0)
        wanted = Layer(dequantized)(x)
        layer = Layer(torch.compile(dequantized)).to("ocl")
        for _ in range(CALLS):
            torch.testing.assert_close(layer(x.to("ocl")).cpu(), wanted)
        self.assertEqual(self.traces(), 1)

    def test_training(self) -> None:
        model = torch.nn.Linear(3, 2).to("ocl")
        compiled = torch.compile(model)
        for _ in range(CALLS):
            compiled(torch.ones(4, 3, device="ocl")).sum().backward()
        self.assertEqual(self.traces(), 1)
        self.assertEqual(model.bias.grad.tolist(), [4 * CALLS] * 2)

    def test_an_optimizer(self) -> None:
        def run(device: str, update: Callable) -> list[torch.Tensor]:
            weight, state = torch.ones(5, device=device), torch.zeros(5, device=device)
            for step in range(1, CALLS + 1):
                update(weight, torch.full((5,), step / 8, device=device), state, step)
            return [weight.cpu(), state.cpu()]

        mine = run("ocl", torch.compile(updated))
        self.assertLessEqual(self.traces(), 2)  # for one step, and for any step
        for a, b in zip(mine, run("cpu", updated), strict=True):
            torch.testing.assert_close(a, b)

    def test_a_refused_graph(self) -> None:
        """It runs operator by operator from then on, with one warning."""
        compiled = torch.compile(lambda x: x.sin() + 1)
        x = torch.ones(4, device="ocl")
        refuse = mock.Mock(side_effect=RuntimeError("planted"))
        with (
            mock.patch("torch_ocl.inductor.compile_fx_inner", refuse),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            for _ in range(CALLS):
                torch.testing.assert_close(compiled(x), x.sin() + 1)
        planted = [str(w.message) for w in said if str(w.message).startswith(NOT_COMPILED)]
        self.assertEqual(len(planted), 1, planted)
        self.assertIn("planted", planted[0])
        self.assertEqual((refuse.call_count, self.traces()), (1, 1))


if __name__ == "__main__":
    unittest.main()
