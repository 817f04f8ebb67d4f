"""What graph networks call: reductions by index and by segment, softmax over edges, gradients."""

from __future__ import annotations

import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

PLACES = (
    {"lengths": torch.tensor([2, 0, 3, 1])},
    {"offsets": torch.tensor([0, 2, 2, 5, 6])},
    {"offsets": torch.tensor([1, 2, 2, 4])},  # neither the first element nor the last two
    {"offsets": torch.tensor([2, 5])},
)


class Layer(torch.nn.Module):
    """Attention over the edges of a graph, then a sum by target and the largest by target."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.score = torch.nn.Linear(6, 8), torch.nn.Linear(16, 1)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        x = self.value(x)
        messages = x[source]
        score = self.score(torch.cat([messages, x[target]], -1)).relu().squeeze(-1)
        top = score.new_zeros(len(x)).scatter_reduce(0, target, score, "amax", include_self=False)
        weight = (score - top.detach()[target]).exp()
        norm = weight.new_zeros(len(x)).index_add(0, target, weight)
        messages = messages * (weight / (norm[target] + 1e-16)).unsqueeze(-1)
        index = target.unsqueeze(-1).expand_as(messages)
        added = torch.zeros_like(x).scatter_add(0, index, messages)
        largest = torch.zeros_like(x).scatter_reduce(0, index, messages, "amax")
        return torch.cat([added, largest, x.new_ones(len(x), 1).cumsum(0)], -1)


class Graphs(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(4)

    def segments(self, x: torch.Tensor, reduce: str, places: dict, initial: float | None) -> list:
        x = x.clone().requires_grad_()
        places = {name: t.to(x.device) for name, t in places.items()}
        y = torch._segment_reduce(x, reduce, unsafe=True, axis=0, initial=initial, **places)
        (slope,) = torch.autograd.grad(torch.where(y.isfinite(), y, 0).sin().sum(), x)
        return [y.detach().cpu(), slope.cpu()]

    def test_segment_reduce(self) -> None:
        x = torch.randn(6, 3)
        x[3] = 0
        for reduce in ("sum", "mean", "max", "min", "prod", "amax", "amin"):
            for places in PLACES:
                for initial in (None, 0, 2.5):
                    with self.subTest(reduce=reduce, places=places, initial=initial):
                        wanted = self.segments(x, reduce, places, initial)
                        mine = self.segments(x.to("ocl"), reduce, places, initial)
                        for ours, theirs in zip(mine, wanted, strict=True):
                            torch.testing.assert_close(ours, theirs, equal_nan=True)
        with self.assertRaisesRegex(RuntimeError, "unsupported reduction"):
            torch._segment_reduce(x.to("ocl"), "median", lengths=torch.tensor([6], device="ocl"))

    def test_layer(self) -> None:
        x, layer = torch.randn(20, 6), Layer()
        edges = torch.randint(20, (2, 90))
        edges[1] = edges[1].clamp(max=17)  # nodes without edges

        def run(device: str) -> list[torch.Tensor]:
            there, inputs = layer.to(device), x.to(device).requires_grad_()
            y = there(inputs, edges.to(device))
            slopes = torch.autograd.grad(y.sin().sum(), [inputs, *there.parameters()])
            return [t.detach().cpu() for t in (y, *slopes)]

        for wanted, mine in zip(run("cpu"), run("ocl"), strict=True):
            # float32 sums of up to 90 terms in another order
            torch.testing.assert_close(mine, wanted, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
