"""What the tests of eigenvalues and singular values share: closeness, gradients and errors on both
devices."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterable, Sequence

import torch
from gpu_style import THOROUGH

EPS = {
    torch.float32: 2.0**-23,
    torch.float64: 2.0**-52,
    torch.complex64: 2.0**-23,
    torch.complex128: 2.0**-52,
}
# Kernels are told the precision and whether numbers are complex, each by itself: two types have
# both of both, the conformance kit has all four. Each type's kernels take a minute to compile.
TYPES = tuple(EPS) if THOROUGH else (torch.float32, torch.complex128)


def exact(t: torch.Tensor) -> torch.Tensor:
    """On the CPU, in twice the precision of float32."""
    return t.cpu().to(torch.complex128 if t.is_complex() else torch.float64)


def some(sizes: tuple, dtype: torch.dtype) -> tuple:
    """All sizes for real numbers, every fourth one for complex ones."""
    return sizes[::4] if dtype.is_complex else sizes


def without_lapack() -> None:
    """A module's set-up: test_lapack.py has the tests of LAPACK."""
    torch.backends.ocl.lapack.disable()


class SpectralCase(unittest.TestCase):
    def alike(self, got: Iterable[torch.Tensor], want: Iterable[torch.Tensor]) -> None:
        """The same types, shapes and strides."""
        for ours, theirs in zip(got, want):
            self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
            self.assertEqual(ours.stride(), theirs.stride())

    def equal(self, got: Iterable[torch.Tensor], want: Iterable[torch.Tensor]) -> None:
        for ours, theirs in zip(got, want):
            self.assertTrue(torch.equal(ours, theirs))

    def same_of_every_layout(
        self, f: Callable[[torch.Tensor], Sequence[torch.Tensor]], a: torch.Tensor
    ) -> Sequence[torch.Tensor]:
        """f(a), which must be the same of transposed matrices, with gaps, and backwards."""
        want = f(a.to("ocl"))
        batch, rows, columns = a.shape
        wide = torch.full((batch, 2 * rows, 3 * columns), float("nan"), dtype=a.dtype)
        wide[:, ::2, 1::3] = a
        gaps = wide.to("ocl")[:, ::2, 1::3]
        for moved in (a.to("ocl").mT.contiguous().mT, gaps, a.flip(0).to("ocl").flip(0)):
            self.equal(f(moved), want)
        return want

    def fails_as_on_the_cpu(
        self, cases: Iterable[tuple[str, Callable[[torch.Tensor], object], torch.Tensor]]
    ) -> None:
        for name, f, x in cases:
            with self.subTest(name=name):
                self.assertEqual(self.failure(f, x, "ocl"), self.failure(f, x, "cpu"))

    def refuses_half(self, f: Callable[[torch.Tensor], object]) -> None:
        with self.assertRaisesRegex(
            NotImplementedError, "float32, float64, complex64 and complex128"
        ):
            f(torch.ones(3, 3, device="ocl").half())

    def near(self, got: torch.Tensor, want: torch.Tensor, bound: float, what: str) -> None:
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
        off = (exact(got) - exact(want)).abs()
        self.assertLessEqual(off.max().item() if off.numel() else 0, bound, what)

    def orthonormal(self, q: torch.Tensor, bound: float, what: str) -> None:
        one = torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1)
        self.near(q.mH @ q, one, bound, what)

    def near_gradients(
        self, f: Callable[[torch.Tensor], torch.Tensor], a: torch.Tensor, bound: float, what: str
    ) -> None:
        """Compares gradients of a weighted sum; `bound` counts by the largest element, or 1."""
        grads = []
        for device in ("cpu", "ocl"):
            x = a.clone().to(device).requires_grad_()
            out = f(x)
            out = torch.view_as_real(out) if out.is_complex() else out
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
