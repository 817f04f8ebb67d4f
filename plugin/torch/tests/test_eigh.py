"""Eigenvalues of symmetric and Hermitian matrices on ocl, and what ATen makes of them, against
PyTorch's CPU: values, properties of the vectors, gradients, layouts, failures."""

import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from spectral_case import EPS, TYPES, SpectralCase, exact, some, without_lapack

LINALG = torch.linalg
SIZES = (1, 2, 3, 7, 16, 17, 31, 33, 64, 65, 100, 150)


def symmetric(a: torch.Tensor) -> torch.Tensor:
    return a + a.mH


def matrices(n: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Symmetric or Hermitian matrices that are hard in different ways."""
    random = symmetric(torch.randn(n, n, dtype=dtype))
    q = LINALG.qr(torch.randn(n, n, dtype=dtype))[0]
    sizes = torch.logspace(0, -9, n, dtype=dtype.to_real()).to(dtype)
    two = torch.ones(n, dtype=dtype)
    two[: n // 2] = -3
    near = torch.ones(n, dtype=dtype) + torch.arange(n) * 4 * EPS[dtype]
    off = torch.zeros(n, n, dtype=dtype)
    off.diagonal(1).fill_(1)
    wilkinson = symmetric(off) + torch.diag((torch.arange(n) - (n - 1) / 2).abs().to(dtype))
    column = torch.randn(n, 1, dtype=dtype)
    return {
        "random": random,
        "positive": random @ random,
        "zeros": torch.zeros(n, n, dtype=dtype),
        "identity": torch.eye(n, dtype=dtype),
        "minus identity": -torch.eye(n, dtype=dtype),
        "diagonal": torch.diag(torch.randn(n, dtype=dtype).real.to(dtype)),
        "ones": torch.ones(n, n, dtype=dtype),
        "swap": torch.eye(n, dtype=dtype).flip(0),
        "rank 1": -column @ column.mH,
        "two values": symmetric(q * two @ q.mH) / 2,
        "near values": symmetric(q * near @ q.mH) / 2,
        "graded": random * sizes * sizes[:, None],
        "graded values": symmetric(q * sizes @ q.mH) / 2,
        "wilkinson": wilkinson,
        "second difference": symmetric(-off) + 2 * torch.eye(n, dtype=dtype),
        "large": random * 1e30,
        "small": random * 1e-30,
        "tiny": random * torch.finfo(dtype).tiny,
    }


def projection(values: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """On the first eigenvector, whose sign does not matter."""
    first = vectors[..., :1]
    return first * values[..., :1, None].sin() @ first.mH


class Case(SpectralCase):
    def check(self, a: torch.Tensor, triangle: str = "L", equal: bool = False) -> None:
        """Rotations leave errors of sqrt(n) eps times the largest eigenvalue in A V - V L, and of
        sqrt(n) eps in the vectors; a factor of 8 for the number of sweeps. Roundings of sums of
        equal numbers all go the same way: n eps. Values are compared with float64's."""
        moved = a.to("ocl")
        values, vectors = LINALG.eigh(moved, triangle)
        want = LINALG.eigh(a, triangle)
        self.alike((values, vectors), want)
        if a.numel() == 0:
            return
        alone = LINALG.eigvalsh(moved, triangle)
        a = exact(a.tril() + a.tril(-1).mH if triangle in "Ll" else a.triu() + a.triu(1).mH)
        a = (a + a.mH) / 2  # without the imaginary parts of the diagonal
        right = LINALG.eigvalsh(a)
        n = a.shape[-1]
        eps = (2 * n if equal else 8 * n**0.5) * EPS[values.dtype]
        bound = eps * right.abs().max().item() + 2 * torch.finfo(values.dtype).tiny
        self.near(values.double(), right, bound, "values")
        self.near(alone.double(), right, bound, "values alone")
        ordered = values.cpu()
        self.assertTrue((ordered[..., 1:] >= ordered[..., :-1]).all())
        values, v = exact(values), exact(vectors)
        self.near(a @ v, v * values[..., None, :], bound, "A V = V L")
        self.orthonormal(v, eps, "V")


setUpModule = without_lapack


class Values(gpu_style.InGpuStyle, Case):
    def test_kinds_of_matrices(self) -> None:
        torch.manual_seed(1)
        for dtype in TYPES:
            for n in some(SIZES, dtype):
                for name, a in matrices(n, dtype).items():
                    with self.subTest(name=name, n=n, dtype=dtype):
                        self.check(a, equal=name == "ones")

    def test_empty(self) -> None:
        for shape in ((0, 0), (0, 4, 4), (2, 0, 0), (2, 0, 3, 3)):
            with self.subTest(shape=shape):
                self.check(torch.empty(shape))

    def test_batches(self) -> None:
        torch.manual_seed(2)
        for shape in ((3, 5, 5), (2, 3, 4, 4), (70, 33, 33), (65, 66, 66), (3, 70, 70), (1, 1, 1)):
            with self.subTest(shape=shape):
                self.check(torch.randn(shape), "U")
        for dtype in (torch.float32, torch.complex64):
            self.check(torch.stack(list(matrices(20, dtype).values())[:-3]))

    def test_triangles(self) -> None:
        """Only one triangle is read: the other holds what is not a number."""
        torch.manual_seed(3)
        for n, dtype in (
            (2, torch.float32),
            (9, torch.complex64),
            (40, torch.float32),
            (130, torch.float32),
        ):
            a = torch.randn(2, n, n, dtype=dtype)
            nan = torch.full_like(a, float("nan"))
            for triangle, dirty in (("L", a.tril() + nan.triu(1)), ("u", a.triu() + nan.tril(-1))):
                with self.subTest(n=n, triangle=triangle):
                    clean = LINALG.eigh(dirty.nan_to_num().to("ocl"), triangle)
                    self.equal(LINALG.eigh(dirty.to("ocl"), triangle), clean)
                    self.check(dirty.nan_to_num(), triangle)

    def test_layouts(self) -> None:
        torch.manual_seed(4)
        a = torch.randn(3, 40, 40)
        want = self.same_of_every_layout(LINALG.eigh, a)
        one = a[:1].expand(4, -1, -1)
        self.assertTrue(torch.equal(LINALG.eigh(one.to("ocl"))[0][3], want[0][0]))

    def test_out(self) -> None:
        a = torch.randn(2, 6, 6, device="ocl")
        want = LINALG.eigh(a)
        outs = [torch.empty(0, device="ocl") for _ in range(2)]
        LINALG.eigh(a, out=tuple(outs))
        self.equal(outs, want)
        values = torch.empty(2, 12, device="ocl")[:, ::2]
        vectors = torch.empty(2, 6, 12, device="ocl")[..., ::2]
        LINALG.eigh(a, out=(values, vectors))
        self.assertTrue(torch.equal(values, want[0]) and torch.equal(vectors, want[1]))
        same = a.clone()
        LINALG.eigh(same, out=(values, same))
        self.assertTrue(torch.equal(same, want[1]))


@gpu_style.of_operators
class Derived(Case):
    """What ATen makes of eigenvalues."""

    FUNCTIONS = {
        "eigvalsh": LINALG.eigvalsh,
        "pinv": lambda a: LINALG.pinv(a, hermitian=True),
        "pinv limit": lambda a: LINALG.pinv(a, atol=0.1, rtol=0.01, hermitian=True),
        "projection": lambda a: projection(*LINALG.eigh(a)),
    }

    def inputs(self, dtype: torch.dtype):
        torch.manual_seed(5)
        for shape in ((5, 5), (3, 12, 12), (70, 9, 9), (40, 40)):
            # Eigenvalues with gaps of about 1 or more, none near 0.
            n = shape[-1]
            yield symmetric(torch.randn(shape, dtype=dtype)) / n + torch.diag(
                torch.arange(2, n + 2).to(dtype)
            )

    def test_values(self) -> None:
        for dtype in TYPES:
            for a in self.inputs(dtype):
                for name, f in self.FUNCTIONS.items():
                    with self.subTest(name=name, shape=list(a.shape), dtype=dtype):
                        want = f(a)
                        # gaps of 1 beside values of n: n times sqrt(n) eps
                        n = a.shape[-1]
                        bound = 8 * n**1.5 * EPS[dtype] * want.abs().max().item()
                        self.near(f(a.to("ocl")), want, bound, name)

    def test_ranks(self) -> None:
        torch.manual_seed(6)
        for dtype in (torch.float32, torch.float64):
            for n in (1, 9, 30, 70):
                for name in ("random", "zeros", "rank 1", "two values", "ones"):
                    a = matrices(n, dtype)[name]
                    with self.subTest(name=name, n=n, dtype=dtype):
                        self.assertEqual(
                            LINALG.matrix_rank(a.to("ocl"), hermitian=True).item(),
                            LINALG.matrix_rank(a, hermitian=True).item(),
                        )

    def test_gradients(self) -> None:
        for a in (*self.inputs(torch.float64), *self.inputs(torch.complex128)):
            for name, f in self.FUNCTIONS.items():
                with self.subTest(name=name, shape=list(a.shape), dtype=a.dtype):
                    self.near_gradients(f, a, 1e-11, name)


class Failures(Case):
    def test_not_finite(self) -> None:
        """Where LAPACK notices, ATen raises; it may also return numbers that are not finite."""
        text = "The algorithm failed to converge because the input matrix is ill-conditioned or has"
        for bad in (float("nan"), float("inf"), -float("inf")):
            for shape, place, batch in (
                ((3, 3), (2, 1), ""),
                ((2, 4, 4), (1, 0, 0), r"\(Batch element 1\): "),
                ((3, 70, 70), (1, 69, 9), r"\(Batch element 1\): "),
            ):
                a = torch.randn(shape)
                a[place] = bad
                for f in (LINALG.eigh, LINALG.eigvalsh):
                    with self.subTest(bad=bad, shape=shape, f=f.__name__):
                        with self.assertRaisesRegex(
                            LINALG.LinAlgError, f"^linalg.eigh: {batch}{text}"
                        ):
                            f(a.to("ocl"))
        a = torch.ones(40, 40)
        a[30, 2] = float("nan")  # the CPU's LAPACK notices this one
        self.assertEqual(
            self.failure(LINALG.eigvalsh, a, "ocl")[1].split("(error")[0],
            self.failure(LINALG.eigvalsh, a, "cpu")[1].split("(error")[0],
        )

    def test_wrong_arguments(self) -> None:
        self.fails_as_on_the_cpu(
            (
                ("vector", LINALG.eigvalsh, torch.ones(3)),
                ("wide", LINALG.eigh, torch.ones(3, 4)),
                ("triangle", lambda a: LINALG.eigh(a, "X"), torch.ones(3, 3)),
            )
        )
        self.refuses_half(LINALG.eigh)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
