"""Test cases of code that torch.compile compiles for ocl: a graph that ends up uncompiled is an
error, and results are compared with those of the CPU."""

from __future__ import annotations

import copy
import unittest
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch.utils._pytree import tree_leaves

NOT_COMPILED = "ocl: torch.compile runs"


class CompileCase(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        torch._dynamo.reset()
        torch.manual_seed(3)
        remembered = warnings.catch_warnings()
        remembered.__enter__()
        self.addCleanup(remembered.__exit__, None, None, None)
        warnings.filterwarnings("error", NOT_COMPILED)

    def close(self, ours: Any, theirs: Any, rtol: float, atol: float) -> None:
        ours, theirs = tree_leaves(ours), tree_leaves(theirs)
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs, strict=True):
            self.assertEqual((a.device.type, a.dtype), ("ocl", b.dtype))
            torch.testing.assert_close(a.cpu(), b, rtol=rtol, atol=atol, equal_nan=True)

    def check(
        self,
        function: Callable,
        *inputs: Any,
        dynamic: bool = False,
        rtol: float = 2e-5,
        atol: float = 2e-5,
    ) -> None:
        """Compiled on ocl as on the CPU without a compiler, for results and changed inputs. The
        default bound: sums of some hundred numbers near 1 in another order, and functions that
        are a few units off."""
        theirs, ours = copy.deepcopy(inputs), to_ocl(copy.deepcopy(inputs))
        want = function(*theirs)
        got = torch.compile(function, dynamic=dynamic, fullgraph=True)(*ours)
        self.close(got, want, rtol, atol)
        tensors = [(a, b) for a, b in zip(ours, theirs) if isinstance(a, torch.Tensor)]
        self.close(*zip(*tensors, strict=True), rtol, atol)


def to_ocl(inputs: Sequence[Any]) -> list[Any]:
    return [x.to("ocl") if isinstance(x, (torch.Tensor, torch.nn.Module)) else x for x in inputs]


def launches(call: Callable[[], Any]) -> int:
    torch.ocl.synchronize()
    before = torch.ocl.counters()["launches"]
    call()
    torch.ocl.synchronize()
    return torch.ocl.counters()["launches"] - before
