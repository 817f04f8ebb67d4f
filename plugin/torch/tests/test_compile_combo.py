"""torch.compile: several kernels in one launch, and optimizers' steps: equal to the CPU's."""

from __future__ import annotations

import copy
import dataclasses
import unittest
from typing import Any
from unittest import mock

import torch
from compile_case import CompileCase, launches, to_ocl
from gpu_style import IS_GPU_STYLE, THOROUGH, InGpuStyle
from torch import nn


def apart(a, b, c, d):
    """Kernels that nothing joins: rows, columns, elements, tiles, places, moments, truths."""
    return (
        a.softmax(-1),
        a.sum(0),
        (b.sin() * 2 + 1).to(torch.bfloat16),
        c.mT.contiguous() + 1,
        a.argmax(1),
        d.var(1),
        c.cumsum(0) > 0,
        b.prod() + b.amin(),
        d.double().mean(),
        a.isnan().any(1),
    )


class Combined(InGpuStyle, CompileCase):
    OPTIMISED = False

    def test_kernels_of_every_kind(self) -> None:
        for rows, columns in ((33, 40), (5, 3), (64, 512))[: 3 if THOROUGH else 1]:
            a, b = torch.randn(rows, columns), torch.rand(rows * 3) + 0.5
            c, d = torch.randn(columns, rows), torch.randn(7, columns) * 3 + 100
            with self.subTest(rows=rows):
                self.check(apart, a, b, c, d, rtol=1e-3, atol=2e-5)

    def test_offsets_strides_and_nothing(self) -> None:
        def of_views(x, y, z):
            return x[1:, ::2].exp(), y[3:].relu().sum(), z.sum(0), (z + 1).sin(), x.mT.amax(1)

        z = torch.randn(0, 5)
        self.check(of_views, torch.randn(9, 12), torch.randn(40), z)

    def test_one_argument_of_several(self) -> None:
        x = torch.randn(30)
        self.check(lambda x: (x.sum(), x.sin(), x.argmin(), x * 2), x)

    def test_one_launch(self) -> None:
        inputs = to_ocl([torch.randn(40, 30), torch.randn(77), torch.randn(5)])
        run = torch.compile(lambda a, b, c: (a.relu(), b.sum(), c.sin(), a.sum(0)))
        run(*inputs)
        self.assertEqual(launches(lambda: run(*inputs)), 1)

    def test_order_of_changes(self) -> None:
        def change(x, y):
            first = x.sum()
            x.add_(1)
            second = x.sum() + y.sum()
            y.mul_(x)
            return first, second, y.sum(), x.sin()

        self.check(change, torch.randn(40), torch.randn(40))

    def test_index_out_of_range_beside_others(self) -> None:
        x, i = torch.randn(9, device="ocl"), torch.tensor([3, 11], device="ocl")
        run = torch.compile(lambda x, i: (x[i], x.exp(), x.sum()))
        with self.assertRaisesRegex(IndexError, "ocl_fused.*11"):
            run(x, i)
            torch.ocl.synchronize()

    def test_sizes_that_vary(self) -> None:
        for count in (5, 40):
            self.check(
                lambda a, b: (a.sin(), b.sum(), b.exp()),
                torch.randn(count),
                torch.randn(count + 7),
                dynamic=True,
            )

    def test_more_tensors_than_a_kernel_takes(self) -> None:
        inputs = to_ocl([torch.randn(3 + i % 5) for i in range(130)])
        got = torch.compile(lambda xs: torch._foreach_mul(torch._foreach_exp(xs), 2.0))(inputs)
        for ours, x in zip(got, inputs, strict=True):
            torch.testing.assert_close(ours.cpu(), x.cpu().exp() * 2)

    def test_fewer_parameters_than_a_fused_kernel_would_have(self) -> None:
        from torch_ocl.inductor import runtime
        from torch_ocl.inductor.target import Target

        few = dataclasses.replace(Target.of(torch.device("ocl")), tensors=10)
        taken, define = [], runtime.Kernels.define

        def count(self, device, name, source, *launch_range):
            taken.append(source.count("_base, ulong"))
            define(self, device, name, source, *launch_range)

        def sums(*xs):
            total = xs[0]
            for x in xs[1:]:
                total = total.sin() + x
            return total

        with (
            mock.patch.object(Target, "of", lambda device: few),
            mock.patch.object(runtime.Kernels, "define", count),
        ):
            # A sine's slope is at most 1, but 24 of them add their roundings.
            self.check(sums, *(torch.randn(70) for _ in range(25)), rtol=1e-4, atol=1e-5)
        self.assertLessEqual(max(taken), few.tensors)


OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01, "centered": True}),
}


@unittest.skipIf(IS_GPU_STYLE and not THOROUGH, "another style of the same texts")
class Optimizers(CompileCase):
    def test_steps(self) -> None:
        model = nn.Sequential(nn.Linear(20, 33), nn.LayerNorm(33), nn.Linear(33, 5, bias=False))
        for name, (kind, options) in list(OPTIMIZERS.items())[: None if THOROUGH else 1]:
            with self.subTest(name):
                torch._dynamo.reset()
                exact, ours = copy.deepcopy(model).double(), copy.deepcopy(model).to("ocl")
                pairs = list(zip(exact.parameters(), ours.parameters(), strict=True))
                steps = [kind(m.parameters(), **options).step for m in (exact, ours)]
                steps[1] = torch.compile(steps[1])
                for _ in range(3):
                    for a, b in pairs:
                        a.grad = torch.randn_like(a)
                        b.grad = a.grad.to("ocl", torch.float32)
                    for step in steps:
                        step()
                for a, b in pairs:
                    # Three updates of lr each, of quotients near 1: a few roundings of them.
                    torch.testing.assert_close(b.cpu().double(), a, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
