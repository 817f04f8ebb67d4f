"""torch.compile: random programs of chains, reductions, views and types, against the CPU."""

from __future__ import annotations

import random
import unittest
from collections.abc import Callable

import torch
from compile_case import CompileCase
from gpu_style import InGpuStyle, some

PROGRAMS = 60

# Each takes a random generator and a tensor of any shape, and gives one.
Step = Callable[[random.Random, torch.Tensor], torch.Tensor]


def _dim(rng: random.Random, x: torch.Tensor) -> int:
    return rng.randrange(x.dim())


def _function(rng: random.Random, x: torch.Tensor) -> torch.Tensor:
    names = ("sin", "tanh", "sigmoid", "exp", "abs", "floor", "erf", "atan", "neg", "sign", "relu")
    return getattr(torch, rng.choice(names))(x.clamp(-4, 4))


def _arithmetic(rng: random.Random, x: torch.Tensor) -> torch.Tensor:
    number, other = rng.choice((0.5, -1.25, 2)), x.flip(_dim(rng, x))
    return rng.choice(
        (
            lambda: x * number + other,
            lambda: torch.maximum(x, other) - number,
            lambda: torch.where(x > number, x, other),
            lambda: x / (other.abs() + 1),
            lambda: torch.lerp(x, other, 0.25),
            lambda: torch.remainder(x, other.abs() + 1),
        )
    )()


def _view(rng: random.Random, x: torch.Tensor) -> torch.Tensor:
    a, b = _dim(rng, x), _dim(rng, x)
    return rng.choice(
        (
            lambda: x.transpose(a, b),
            lambda: x.reshape(-1, x.shape[-1]),
            lambda: x.narrow(a, 0, max(1, x.shape[a] // 2)),
            lambda: x.unsqueeze(a).expand(*x.shape[:a], 2, *x.shape[a:]),
            lambda: torch.cat([x, x * 2], a),
            lambda: x.roll(1, a),
            lambda: torch.nn.functional.pad(x, (1, 2)),
            lambda: x.index_select(a, torch.tensor([0, x.shape[a] - 1], device=x.device)),
        )
    )()


def _reduction(rng: random.Random, x: torch.Tensor) -> torch.Tensor:
    a, keep = _dim(rng, x), rng.random() < 0.7
    return rng.choice(
        (
            lambda: x - x.mean(a, keepdim=True),
            lambda: x.softmax(a),
            lambda: x.sum(a, keepdim=keep) if keep or x.dim() > 1 else x,
            lambda: x.amax(a, keepdim=True) - x,
            lambda: x.argmin(a, keepdim=True) + x,
            lambda: torch.nn.functional.layer_norm(x, x.shape[-1:]),
            lambda: (x > 0).sum(a, keepdim=True) * x,
            lambda: x.var(a, unbiased=False, keepdim=True) + x,
        )
    )()


def _type(rng: random.Random, x: torch.Tensor) -> torch.Tensor:
    return rng.choice(
        (
            lambda: x.clamp(-100, 100).int() // 3 + x,
            lambda: (x.clamp(-100, 100).long() % 5).float() * 0.5,
            lambda: (x > 0.5).float() + x,
            lambda: x.double().mul(0.5).float(),
        )
    )()


STEPS: tuple[Step, ...] = (_function, _arithmetic, _arithmetic, _view, _view, _reduction, _type)
SIZES = (1, 2, 3, 7, 16, 20, 33, 64)


def program(seed: int) -> tuple[Callable[[torch.Tensor], tuple[torch.Tensor, ...]], torch.Tensor]:
    """A function that makes the same steps at each call, and its input."""
    rng = random.Random(seed)
    shape = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
    steps = [rng.choice(STEPS) for _ in range(rng.randint(3, 8))]

    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        own, results = random.Random(seed + 1), []
        for step in steps:
            x = step(own, x)
            if x.numel() > 1 << 16:
                x = x[(0,) * (x.dim() - 1)]
            if own.random() < 0.3:
                results.append(x)
        return (*results, x)

    generator = torch.Generator().manual_seed(seed)
    return run, torch.randn(shape, generator=generator)


class Programs(InGpuStyle, CompileCase):
    OPTIMISED = False

    def test_random(self) -> None:
        for seed in range(some(PROGRAMS * 3)):
            run, x = program(seed)
            with self.subTest(seed=seed, shape=tuple(x.shape)):
                torch._dynamo.reset()
                # Chains of eight operations of numbers up to a hundred.
                self.check(run, x, dynamic=seed % 4 == 3, rtol=2e-4, atol=2e-4)


if __name__ == "__main__":
    unittest.main()
