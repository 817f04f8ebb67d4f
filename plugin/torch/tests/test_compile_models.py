"""torch.compile: training steps and a decoder, equal to eager's; dropout; optimizers."""

from __future__ import annotations

import copy
import unittest

import torch
import torch.nn.functional as F
from compile_case import CompileCase, launches
from gpu_style import THOROUGH
from models import run
from torch import nn


class Block(nn.Module):
    """A layer of a transformer, with the operators of BERT, GPT-2 and Llama."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first, self.last = nn.LayerNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gate = nn.Linear(width, 4 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.qkv(self.first(x)).unflatten(-1, (3, 4, -1)).transpose(1, 3)
        q, k, v = heads.unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.last(x)
        return x + self.down(F.gelu(self.up(y)) + F.silu(self.gate(y)))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 64), nn.Linear(64, 50)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.words(ids)))


class Residual(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.a, self.b = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.c, self.d = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.d(self.b(F.relu(self.c(self.a(x))))) + x)


class Training(CompileCase):
    def steps(
        self, model: nn.Module, inputs: torch.Tensor, loss, count: int = 2
    ) -> list[nn.Module]:
        """The model after steps on the CPU, and compiled on ocl."""
        trained = []
        for device in ("cpu", "ocl"):
            own = copy.deepcopy(model).to(device)
            run = torch.compile(own) if device == "ocl" else own
            optimizer = torch.optim.SGD(own.parameters(), lr=0.05, momentum=0.9)
            for _ in range(count):
                optimizer.zero_grad()
                loss(run(inputs.to(device))).backward()
                optimizer.step()
            trained.append(own)
        return trained

    def check_training(self, model: nn.Module, inputs: torch.Tensor, loss) -> None:
        theirs, ours = self.steps(model, inputs, loss)
        for (name, a), (_, b) in zip(ours.state_dict().items(), theirs.state_dict().items()):
            with self.subTest(name):
                torch.testing.assert_close(a.cpu(), b, rtol=1e-3, atol=2e-4)

    def test_words(self) -> None:
        ids = torch.randint(50, (2, 17))
        self.check_training(
            Words(), ids, lambda y: F.cross_entropy(y.flatten(0, 1), ids.flatten().to(y.device))
        )

    def test_residual_blocks(self) -> None:
        model = nn.Sequential(Residual(), Residual()).train()
        self.check_training(model, torch.randn(3, 8, 12, 12), lambda y: y.square().mean())

    def test_autocast(self) -> None:
        model, ids = Words().to("ocl"), torch.randint(50, (2, 17)).to("ocl")
        with torch.autocast("ocl", dtype=torch.bfloat16):
            want, got = model(ids), torch.compile(model)(ids)
        # Chains are rounded to eight bits at other places.
        torch.testing.assert_close(got, want, rtol=5e-2, atol=5e-2)

    def test_sizes_that_vary(self) -> None:
        model = Words().eval()
        compiled = torch.compile(copy.deepcopy(model).to("ocl"), dynamic=True)
        made = None
        for length in (5, 9, 24):
            ids = torch.randint(50, (2, length))
            with torch.no_grad():
                self.close(compiled(ids.to("ocl")), model(ids), 1e-4, 1e-4)
            graphs = len(torch.ocl.compile_report())
            self.assertEqual(graphs, made or graphs)
            made = graphs

    def test_fewer_launches(self) -> None:
        model, ids = Words().to("ocl").eval(), torch.randint(50, (2, 16)).to("ocl")
        compiled = torch.compile(model)
        with torch.no_grad():
            compiled(ids), model(ids)
            own, eager = launches(lambda: compiled(ids)), launches(lambda: model(ids))
        self.assertLess(own, eager)


class Families(unittest.TestCase):
    """Whole models, each in a process of its own: forward, gradients, gradients under autocast,
    against the CPU in float64; `python -m models.run --compiled` shows the numbers."""

    def test_equal_to_cpu(self) -> None:
        for name in run.FAMILIES if THOROUGH else ("gat",):
            with self.subTest(name):
                _, result, why, _ = run.run_apart(name, 600, compiled=True)
                self.assertIsNotNone(result, why)
                self.assertEqual(run.judge(result), [])
                self.assertEqual(set(result["calls"]) - set(CALLS), set())


CALLS: tuple[str, ...] = ()
"""Operators of these models that are no kernels, and have none in their lowerings' place."""


class Dropout(CompileCase):
    def test_as_many_as_asked_and_the_same_backward(self) -> None:
        x = torch.ones(400, 500, device="ocl", requires_grad=True)
        out = torch.compile(lambda x: F.dropout(x, 0.25) * 3)(x)
        out.sum().backward()
        kept = out.detach().cpu() != 0
        self.assertAlmostEqual(kept.float().mean().item(), 0.75, delta=0.01)
        torch.testing.assert_close(out.detach().cpu(), kept * 4.0)
        torch.testing.assert_close(x.grad.cpu(), kept * 4.0)

    def test_seeds(self) -> None:
        draw = torch.compile(lambda x: (torch.rand_like(x), torch.randn_like(x)))
        x, drawn = torch.empty(100, 333, device="ocl"), []
        for seed in (5, 5, 6):
            torch.manual_seed(seed)
            drawn.append([t.cpu() for t in draw(x)])
        for again, other in zip(drawn[1], drawn[2], strict=True):
            self.assertFalse(torch.equal(again, other))
        for once, again in zip(drawn[0], drawn[1], strict=True):
            self.assertTrue(torch.equal(once, again))
        uniform, normal = drawn[0]
        self.assertAlmostEqual(uniform.mean().item(), 0.5, delta=0.01)
        self.assertAlmostEqual(normal.mean().item(), 0, delta=0.02)
        self.assertAlmostEqual(normal.std().item(), 1, delta=0.02)


if __name__ == "__main__":
    unittest.main()
