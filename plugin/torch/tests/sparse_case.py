"""What the tests of sparse tensors share: random tensors of all layouts, and their comparison."""

import unittest
from collections.abc import Callable
from typing import Any

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)
EPS = {
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
    torch.float32: 2.0**-23,
    torch.complex64: 2.0**-23,
}


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=torch.float64 if dtype.is_floating_point else dtype).to(
            dtype
        )
    return torch.randint(0, 2 if dtype is torch.bool else 5, shape).to(dtype)


def coo(
    sizes: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    entries: int = 12,
    sparse_dim: int | None = None,
) -> torch.Tensor:
    """A COO tensor on the CPU whose positions repeat where there are few."""
    sparse_dim = len(sizes) if sparse_dim is None else sparse_dim
    if 0 in sizes[:sparse_dim]:
        entries = 0
    rows = [torch.randint(0, max(size, 1), (entries,)) for size in sizes[:sparse_dim]]
    indices = torch.stack(rows) if rows else torch.zeros(0, entries, dtype=torch.int64)
    values = numbers((entries, *sizes[sparse_dim:]), dtype)
    return torch.sparse_coo_tensor(indices, values, sizes, check_invariants=True)


def csr(
    rows: int, columns: int, dtype: torch.dtype = torch.float32, index: torch.dtype = torch.int64
) -> torch.Tensor:
    """A CSR matrix on the CPU; about a third of its elements are stored, some rows are empty."""
    mask = (torch.rand(rows, columns) < 0.33) & (torch.rand(rows, 1) < 0.8)
    where = mask.nonzero()
    start = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    return torch.sparse_csr_tensor(
        start.to(index),
        where[:, 1].to(index),
        numbers((len(where),), dtype),
        (rows, columns),
        check_invariants=True,
    )


def dense(t: torch.Tensor) -> torch.Tensor:
    """On the CPU, with all elements. Converted by the CPU, so that only the entries are judged."""
    t = t.detach().cpu()
    if t.layout is torch.strided:
        return t
    if t.dtype is torch.bool:  # the CPU adds numbers that are not 0
        return t.to(torch.uint8).to_dense().bool()
    if t.dtype in (torch.float16, torch.bfloat16):  # rounded once
        return t.to(torch.float64).to_dense().to(t.dtype)
    return t.to_dense()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(len(self.id()))

    def agree(self, got: Any, want: Any, terms: float = 8) -> None:
        """Sums of `terms` numbers of size 1: the rounding of each, in any order."""
        if not isinstance(want, torch.Tensor):
            self.assertEqual(got, want)
            return
        self.assertEqual((got.layout, got.dtype, got.shape), (want.layout, want.dtype, want.shape))
        self.assertEqual(got.device.type, "ocl")
        if want.layout is torch.sparse_coo:
            self.assertEqual(
                (got.sparse_dim(), got.dense_dim()), (want.sparse_dim(), want.dense_dim())
            )
        eps = EPS.get(want.dtype, 2.0**-52)
        bound = {"rtol": 0, "atol": 0}
        if want.dtype.is_floating_point or want.dtype.is_complex:
            bound = {"rtol": 4 * eps, "atol": 4 * eps * terms}
        torch.testing.assert_close(dense(got), dense(want), equal_nan=True, **bound)

    def both(self, f: Callable[..., Any], *args: Any, terms: float = 8) -> None:
        moved = [a.to("ocl") if isinstance(a, torch.Tensor) else a for a in args]
        got, want = f(*moved), f(*args)
        if isinstance(want, (tuple, list)):
            for a, b in zip(got, want, strict=True):
                self.agree(a, b, terms)
        else:
            self.agree(got, want, terms)

    def both_or_neither(self, f: Callable[..., Any], *args: Any) -> bool:
        """The call fails on both devices, or on neither, with equal results: then it is True."""
        try:
            f(*args)
        except RuntimeError:
            moved = [a.to("ocl") if isinstance(a, torch.Tensor) else a for a in args]
            with self.assertRaises(RuntimeError):
                f(*moved)
            return False
        self.both(f, *args)
        return True

    def same_error(self, f: Callable[..., Any], *args: Any, words: bool = True) -> None:
        """The call fails on both devices, with the CPU's type of error and text."""
        moved = [a.to("ocl") if isinstance(a, torch.Tensor) else a for a in args]
        with self.assertRaises(Exception) as want:
            f(*args)
        with self.assertRaises(type(want.exception)) as got:
            f(*moved)
        if words:
            self.assertEqual(str(got.exception), str(want.exception))
