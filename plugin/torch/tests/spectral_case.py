"""What the tests of eigenvalues and singular values share: closeness, gradients and errors on both
devices."""

from __future__ import annotations

import unittest
from collections.abc import Callable

import torch


class SpectralCase(unittest.TestCase):
    def near(self, got: torch.Tensor, want: torch.Tensor, bound: float, what: str) -> None:
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
        off = (got.cpu().double() - want.double()).abs()
        self.assertLessEqual(off.max().item() if off.numel() else 0, bound, what)

    def near_gradients(
        self, f: Callable[[torch.Tensor], torch.Tensor], a: torch.Tensor, bound: float, what: str
    ) -> None:
        """Compares gradients of a weighted sum; `bound` counts by the largest element, or 1."""
        grads = []
        for device in ("cpu", "ocl"):
            x = a.clone().to(device).requires_grad_()
            out = f(x)
            weights = torch.linspace(0.5, 2, out.numel(), dtype=torch.float64)
            (out * weights.view(out.shape).to(device)).sum().backward()
            grads.append(x.grad)
        size = max(grads[0].abs().max().item(), 1)
        self.near(grads[1], grads[0], bound * size, what)

    def failure(
        self, f: Callable[[torch.Tensor], object], a: torch.Tensor, device: str
    ) -> tuple[type, str]:
        try:
            f(a.to(device))
        except (RuntimeError, ValueError) as error:
            return type(error), str(error)
        self.fail(f"no error on {device}")
