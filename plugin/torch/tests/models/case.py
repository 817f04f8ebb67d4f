"""What a builder returns: a model with its inputs and how to get numbers out of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch


def results_of(output: Any) -> list[torch.Tensor]:
    """Every floating-point tensor of a model's output, in order; caches are left out."""
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, dict):
        return [t for v in output.values() for t in results_of(v)]
    if isinstance(output, (list, tuple)):
        return [t for v in output for t in results_of(v)]
    return []


def default_loss(output: Any) -> torch.Tensor:
    """The model's own loss, or a weighted mean that tells every position apart."""
    if getattr(output, "loss", None) is not None:
        return output.loss
    total = torch.zeros((), device=results_of(output)[0].device)
    for tensor in results_of(output):
        weights = torch.linspace(-1, 1.5, tensor.numel(), dtype=tensor.dtype).to(tensor.device)
        total = total + (tensor * weights.reshape(tensor.shape)).mean()
    return total


@dataclasses.dataclass
class Case:
    """`extra` computes integers that must be equal on both devices (generated tokens)."""

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    loss: Callable[[Any], torch.Tensor] = default_loss
    extra: Callable[[torch.nn.Module, dict[str, torch.Tensor]], torch.Tensor] | None = None
