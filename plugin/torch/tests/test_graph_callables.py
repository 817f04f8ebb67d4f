"""Graphed callables: modules and functions that replay, with gradients."""

from __future__ import annotations

import copy
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from graph_case import Case, Elsewhere, mlp
from torch.nn import functional


class Callables(Elsewhere, Case):
    def test_gradients_and_training(self) -> None:
        model = mlp()
        other = copy.deepcopy(model)
        x = torch.randn(8, 16, device="ocl", requires_grad=True)
        graphed = torch.ocl.make_graphed_callables(model, (x,))
        self.assertIs(graphed, model)
        optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (model, other)]
        for _ in range(3):
            data, target = torch.randn(8, 16), torch.randint(4, (8,), device="ocl")
            seen = []
            for m, optimizer in zip((model, other), optimizers, strict=True):
                given = data.to("ocl").requires_grad_()
                optimizer.zero_grad()
                loss = functional.cross_entropy(m(given), target)
                loss.backward()
                optimizer.step()
                seen.append([loss, given.grad, *m.parameters(), *[p.grad for p in m.parameters()]])
            for a, b in zip(*seen, strict=True):
                self.same(a.detach(), b.detach())

    def test_a_module_replays_in_its_mode_alone(self) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).to("ocl")
        x = torch.randn(64, 4, device="ocl")
        torch.ocl.make_graphed_callables(model, (x,))
        a, b = model(x).clone(), model(x).clone()
        self.assertFalse(torch.equal(a, b))
        model.eval()
        self.same(model(x), model[0](x))

    def test_functions_and_several_at_once(self) -> None:
        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        def parts(x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"sum": x.sum(), "square": x * x}

        x = torch.randn(5, device="ocl", requires_grad=True)
        first, second = torch.ocl.make_graphed_callables((double, parts), ((x,), (x,)))
        given = torch.randn(5, device="ocl", requires_grad=True)
        result = second(first(given))
        (result["sum"] + result["square"].sum()).backward()
        plain = given.detach().clone().requires_grad_()
        wanted = parts(double(plain))
        (wanted["sum"] + wanted["square"].sum()).backward()
        self.same(result["square"].detach(), wanted["square"].detach())
        self.same(given.grad, plain.grad)
        with self.assertRaisesRegex(TypeError, "sample_args"):
            first(given, given)
        for other in (given[:1], given.half(), 2.0):
            with self.assertRaisesRegex(TypeError, "argument 0 of a graphed callable"):
                first(other)

    def test_without_gradients(self) -> None:
        graphed = torch.ocl.make_graphed_callables(torch.exp, (torch.ones(3, device="ocl"),))
        x = torch.randn(3, device="ocl")
        self.same(graphed(x), torch.exp(x))

    def test_inputs_without_use(self) -> None:
        x = torch.randn(3, device="ocl", requires_grad=True)
        y = torch.randn(3, device="ocl", requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "not have been used"):
            torch.ocl.make_graphed_callables(lambda a, b: a * 2, (x, y))
        graphed = torch.ocl.make_graphed_callables(
            lambda a, b: a * 2, (x, y), allow_unused_input=True
        )
        graphed(x, y).sum().backward()
        self.same(x.grad, torch.full((3,), 2.0))
        self.assertIsNone(y.grad)

    def test_what_is_refused(self) -> None:
        model, x = mlp(), torch.randn(8, 16, device="ocl")
        with self.assertRaisesRegex(TypeError, "are tensors"):
            torch.ocl.make_graphed_callables(model, (3,))
        with self.assertRaisesRegex(ValueError, "sample_args for 1"):
            torch.ocl.make_graphed_callables((model, model), ((x,),))
        handle = model.register_forward_hook(lambda *_: None)
        with self.assertRaisesRegex(RuntimeError, "hooks"):
            torch.ocl.make_graphed_callables(model, (x,))
        handle.remove()
        with torch.autocast("ocl"), self.assertRaisesRegex(RuntimeError, "cache"):
            torch.ocl.make_graphed_callables(model, (x,))


if __name__ == "__main__":
    unittest.main()
