"""What the tests of recorded graphs share: a recording, models, and their other run."""

from __future__ import annotations

import gc
import unittest
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import IS_GPU_STYLE, THOROUGH, run_again
from torch.nn import functional

# A recording begins with a collection of garbage: what the imports have made need not be looked at.
gc.freeze()

Work = Callable[[], object]


def recorded(work: Work, **options: object) -> tuple[torch.ocl.OCLGraph, object]:
    """The graph of some work, which has run once before, and the work's result."""
    work()
    graph = torch.ocl.OCLGraph()
    with torch.ocl.graph(graph, **options):
        result = work()
    return graph, result


def mlp() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    ).to("ocl")


class Block(torch.nn.Module):
    """A transformer's block over embedded tokens, with its loss."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.embed, self.norm = torch.nn.Embedding(50, 32), torch.nn.LayerNorm(32)
        self.qkv, self.out = torch.nn.Linear(32, 96), torch.nn.Linear(32, 50)
        self.dropout = dropout

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        q, k, v = self.qkv(self.norm(x)).view(*tokens.shape, 3, 4, 8).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout
        )
        x = x + attended.transpose(1, 2).flatten(2)
        return functional.cross_entropy(self.out(x).flatten(0, 1), tokens.flatten())


class Case(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def same(self, a: torch.Tensor, b: torch.Tensor) -> None:
        self.assertTrue(torch.equal(a.cpu(), b.cpu()))


class Elsewhere:
    """A mixin of a test case: runs its file once more as GPUs would."""

    @unittest.skipIf(IS_GPU_STYLE, "this is it")
    def test_with_a_launch_thread(self) -> None:
        settings = {"OCLTENSOR_KERNEL_STYLE": "gpu", "OCLTENSOR_LAUNCH_THREAD": "1"}
        if THOROUGH:  # else test_graph_capture has some
            settings["OCLTENSOR_CAPS"] = "structs_by_value=0"
        run_again(self, **settings)
