"""Test cases of plans: each graph that is compiled runs as its plan and as the generated Python,
whose results must be the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from compile_case import CompileCase
from torch._inductor.codecache import PyCodeCache
from torch_ocl.inductor import plan as plans


def bits(x: Any) -> Any:
    """What is compared of a value: of a tensor its bytes, sizes and strides."""
    if not isinstance(x, torch.Tensor):
        return x
    data = torch.empty(x.numel(), dtype=x.dtype).copy_(x.detach().cpu().reshape(-1))
    return data.view(torch.uint8).tolist(), x.dtype, x.device, x.shape, x.stride()


class Copies:
    """Of tensors; those that share memory share that of their copies, too."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}

    def of(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        storage = x.untyped_storage()
        if storage.data_ptr() not in self._storages:
            self._storages[storage.data_ptr()] = storage.clone()
        copy = torch.empty(0, dtype=x.dtype, device=x.device)
        copied = self._storages[storage.data_ptr()]
        return copy.set_(copied, x.storage_offset(), x.shape, x.stride())


class PlanCase(CompileCase):
    def setUp(self) -> None:
        super().setUp()
        PyCodeCache.cache_clear()  # a module that is loaded already has its plan
        self.calls = 0
        self.graphs: list[Callable] = []
        """The functions of the generated modules, as plans; ``pythons``: as they are."""
        self.pythons: list[Callable] = []
        planned = plans.planned
        patch = mock.patch.object(plans, "planned", lambda *given: self._both(planned, *given))
        patch.start()
        self.addCleanup(patch.stop)

    def _both(self, planned: Callable, python: Callable, names: dict[str, Any]) -> Callable:
        plan = planned(python, names)
        self.graphs.append(plan)
        self.pythons.append(python)

        def run(arguments: list[Any]) -> Any:
            with torch.no_grad():
                return self._compared(plan, python, arguments)

        return run

    def _compared(self, plan: Callable, python: Callable, arguments: list[Any]) -> Any:
        self.calls += 1
        copies = Copies()
        kept, theirs = list(arguments), [copies.of(x) for x in arguments]
        kept_copies = list(theirs)
        state = torch.ocl.get_rng_state()
        expected = python(theirs)
        torch.ocl.set_rng_state(state)
        got = plan(arguments)
        self.assertEqual(arguments, [])
        self.assertIs(type(got), type(expected))
        self.assertEqual([bits(x) for x in got], [bits(x) for x in expected])
        self.assertEqual([bits(x) for x in kept], [bits(x) for x in kept_copies])
        # What shares memory does so with the same.
        places = [
            [_shared(x, results + given) for x in results]
            for results, given in ((list(got), kept), (list(expected), kept_copies))
        ]
        self.assertEqual(*places)
        return got

    def summary(self) -> plans.PlanSummary:
        """Of the last graph, which must have a plan."""
        plan = torch.ocl.compile_report()[-1].plan
        self.assertIsInstance(plan, plans.PlanSummary)
        return plan


def _shared(x: Any, others: list[Any]) -> list[int]:
    if not isinstance(x, torch.Tensor) or x.numel() == 0:
        return []
    place = x.untyped_storage().data_ptr()
    tensors = [(i, o) for i, o in enumerate(others) if isinstance(o, torch.Tensor) and o.numel()]
    return [i for i, o in tensors if o.untyped_storage().data_ptr() == place]
