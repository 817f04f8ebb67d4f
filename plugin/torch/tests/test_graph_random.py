"""Random numbers in recorded graphs: replays continue the sequence of eager work."""

from __future__ import annotations

import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from graph_case import Case, Elsewhere, Work
from torch.nn import functional


class Randomness(Elsewhere, Case):
    def draws(self, work: Work, steps: int = 3) -> None:
        """Replays continue the sequence that eager work would draw."""
        work()
        graph = torch.ocl.OCLGraph()
        state = torch.ocl.get_rng_state()
        with torch.ocl.graph(graph):
            result = work()
        self.same(torch.ocl.get_rng_state(), state)  # a recording draws nothing
        torch.ocl.manual_seed(5)
        wanted = [work() for _ in range(steps)]
        after = torch.ocl.get_rng_state()
        torch.ocl.manual_seed(5)
        kept = []
        for _ in wanted:  # without waiting in between
            graph.replay()
            kept.append(result.clone())
        for have, want in zip(kept, wanted, strict=True):
            self.same(have, want)
        self.same(torch.ocl.get_rng_state(), after)
        self.assertFalse(torch.equal(wanted[0], wanted[1]))

    def test_numbers(self) -> None:
        x = torch.rand(64, device="ocl")
        self.draws(lambda: torch.randn(100, device="ocl") + torch.rand(100, device="ocl"))
        self.draws(lambda: functional.dropout(x, 0.5))
        self.draws(lambda: torch.multinomial(x, 20, replacement=True))
        self.draws(lambda: torch.randint(1 << 40, (30,), device="ocl"))
        self.draws(lambda: torch.bernoulli(x) + torch.poisson(x))
        self.draws(lambda: torch.empty(33, device="ocl").exponential_())

    def test_both_directions_of_attention(self) -> None:
        q = torch.randn(2, 2, 16, 8, device="ocl", requires_grad=True)

        def work() -> torch.Tensor:
            y = functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
            return torch.autograd.grad(y.square().sum(), q)[0]

        self.draws(work)

    def test_checkpoints(self) -> None:
        x = torch.randn(8, 16, device="ocl", requires_grad=True)
        layer = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5)).to("ocl")

        def work() -> torch.Tensor:
            y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
            return torch.autograd.grad((y * y).sum(), x)[0]

        self.draws(work)

    def test_other_generators(self) -> None:
        generator = torch.Generator("ocl").manual_seed(3)

        def work() -> torch.Tensor:
            return torch.randn(10, device="ocl", generator=generator)

        work()
        graph = torch.ocl.OCLGraph()
        graph.register_generator_state(generator)
        with torch.ocl.graph(graph):
            y = work()
        generator.manual_seed(3)
        wanted = [work(), work()]
        generator.manual_seed(3)
        for want in wanted:
            graph.replay()
            self.same(y, want)
        with self.assertRaisesRegex(RuntimeError, "register it with the graph"):
            with torch.ocl.graph(torch.ocl.OCLGraph()):
                work()

    def test_seeding_is_refused(self) -> None:
        torch.rand(3, device="ocl")
        with torch.ocl.graph(torch.ocl.OCLGraph()):
            with self.assertRaisesRegex(RuntimeError, "seed it before"):
                torch.ocl.manual_seed(3)
            torch.rand(3, device="ocl")
        torch.ocl.manual_seed(3)


if __name__ == "__main__":
    unittest.main()
