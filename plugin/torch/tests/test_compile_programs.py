"""torch.compile: random programs of chains, reductions, views and types, against the CPU."""

from __future__ import annotations

import random
import unittest
from collections.abc import Callable

import torch
from compile_case import CompileCase
from gpu_style import InGpuStyle, some

PROGRAMS = 60

Operation = Callable[[torch.Tensor], torch.Tensor]
# Each chooses an operation for a tensor of this shape.
Step = Callable[[random.Random, list[int]], Operation]


def _function(rng: random.Random, shape: list[int]) -> Operation:
    names = ("sin", "tanh", "sigmoid", "exp", "abs", "erf", "atan", "neg", "relu", "square")
    function = getattr(torch, rng.choice(names))
    return lambda x: function(x.clamp(-4, 4))


def _arithmetic(rng: random.Random, shape: list[int]) -> Operation:
    number, a = rng.choice((0.5, -1.25, 2)), rng.randrange(len(shape))
    return rng.choice(
        (
            lambda x: x * number + x.flip(a),
            lambda x: torch.maximum(x, x.flip(a)) - number,
            lambda x: torch.minimum(x, x.flip(a).detach()) * number,
            lambda x: x / (x.flip(a).abs() + 1),
            lambda x: torch.lerp(x, x.flip(a), 0.25),
            lambda x: torch.addcmul(x, x, x.flip(a), value=number),
        )
    )


def _view(rng: random.Random, shape: list[int]) -> Operation:
    a, b = rng.randrange(len(shape)), rng.randrange(len(shape))
    return rng.choice(
        (
            lambda x: x.transpose(a, b),
            lambda x: x.reshape(-1, x.shape[-1]),
            lambda x: x.narrow(a, 0, max(1, shape[a] // 2)),
            lambda x: x.unsqueeze(a).expand(*x.shape[:a], 2, *x.shape[a:]),
            lambda x: torch.cat([x, x * 2], a),
            lambda x: x.roll(1, a),
            lambda x: torch.nn.functional.pad(x, (1, 2)),
            lambda x: x.index_select(a, torch.tensor([0, shape[a] - 1], device=x.device)),
        )
    )


def _reduction(rng: random.Random, shape: list[int]) -> Operation:
    a = rng.randrange(len(shape))
    return rng.choice(
        (
            lambda x: x - x.mean(a, keepdim=True),
            lambda x: x.softmax(a),
            lambda x: x.sum(a) if len(shape) > 1 else x,
            lambda x: x.amax(a, keepdim=True) - x,
            lambda x: x.cumsum(a) * 0.5,
            lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=0.1),
            lambda x: torch.logsumexp(x, a, keepdim=True) + x,
            lambda x: x.var(a, unbiased=False, keepdim=True) + x,
        )
    )


def _type(rng: random.Random, shape: list[int]) -> Operation:
    return rng.choice(
        (
            lambda x: torch.arange(x.numel(), device=x.device).view(x.shape) % 5 + x,
            lambda x: x.double().mul(0.5).float(),
            lambda x: (
                x.masked_fill(torch.ones_like(x, dtype=torch.bool).tril(), 0.5)
                if x.dim() > 1
                else x
            ),
            lambda x: x + x.shape[0],
        )
    )


STEPS: tuple[Step, ...] = (_function, _arithmetic, _arithmetic, _view, _view, _reduction, _type)
SIZES = (1, 2, 3, 7, 16, 20, 33, 64)
LARGEST = 1 << 16


def program(seed: int) -> tuple[Callable[[torch.Tensor], list[torch.Tensor]], torch.Tensor]:
    """A function of some operations, whose last and some other results it gives; its input."""
    rng = random.Random(seed)
    shape = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
    given = x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    operations, shown = [], []
    for _ in range(rng.randint(3, 8)):
        operation = rng.choice(STEPS)(rng, list(x.shape))
        if operation(x).numel() > LARGEST:
            continue
        x = operation(x)
        operations.append(operation)
        shown.append(rng.random() < 0.3)

    def run(x: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for operation, is_shown in zip(operations, shown, strict=True):
            x = operation(x)
            if is_shown:
                results.append(x)
        return [*results, x]

    return run, given


class Programs(InGpuStyle, CompileCase):
    OPTIMISED = False

    def test_random(self) -> None:
        for seed in range(some(PROGRAMS * 3)):
            run, x = program(seed)
            with self.subTest(seed=seed, shape=tuple(x.shape)):
                torch._dynamo.reset()
                # Continuous operations, so that units in the last place stay some.
                self.check(run, x, dynamic=seed % 4 == 3, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
