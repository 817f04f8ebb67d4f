"""Singular values on ocl, and what ATen makes of them, against PyTorch's CPU: values, properties of
the vectors, gradients, layouts, failures."""

import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from spectral_case import EPS, TYPES, SpectralCase, exact, some, without_lapack

LINALG = torch.linalg
SHAPES = (
    (1, 1),
    (1, 5),
    (2, 2),
    (7, 3),
    (3, 7),
    (16, 16),
    (33, 20),
    (31, 70),
    (64, 64),
    (65, 65),
    (100, 97),
    (150, 40),
    (40, 150),
)


def orthogonal(n: int, dtype: torch.dtype) -> torch.Tensor:
    return LINALG.qr(torch.randn(n, n, dtype=dtype))[0]


def matrices(m: int, n: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Matrices that are hard in different ways."""
    k = min(m, n)
    real = dtype.to_real()
    random = torch.randn(m, n, dtype=dtype)
    left, right = orthogonal(m, dtype)[:, :k], orthogonal(n, dtype)[:k]
    repeated = torch.ones(k, dtype=dtype)
    repeated[: k // 2] = 3
    rank = max(k // 3, 1)
    triangle = torch.full((m, n), -1.0, dtype=dtype).triu(1)
    triangle.diagonal().fill_(1)
    holes = random.clone()
    holes[:, ::2] = 0
    return {
        "random": random,
        "zeros": torch.zeros(m, n, dtype=dtype),
        "identity": torch.eye(m, n, dtype=dtype),
        "ones": torch.ones(m, n, dtype=dtype),
        "rank deficient": random[:, :rank] @ random[:rank],
        "repeated values": left @ (repeated[:, None] * right),
        "graded columns": random * torch.logspace(0, -9, n, dtype=real),
        "graded rows": random * torch.logspace(-9, 0, m, dtype=real)[:, None],
        "graded values": left @ (torch.logspace(0, -6, k, dtype=real)[:, None] * right),
        "triangle": triangle,
        "columns of zeros": holes,
        "large": random * 1e30,
        "small": random * 1e-30,
        "tiny": random * torch.finfo(dtype).tiny,
    }


class Case(SpectralCase):
    def check(self, a: torch.Tensor, full: bool, equal: bool = False) -> None:
        """Householder reflections and rotations leave errors of sqrt(n) eps times the largest
        singular value in products, and of sqrt(n) eps in the vectors; a factor of 8 for the number
        of them on the way. Roundings of sums of equal numbers all go the same way: n eps, for each
        of the two orthogonal matrices whose product U is (LAPACK's are off by as much)."""
        moved = a.to("ocl")
        u, s, vh = LINALG.svd(moved, full_matrices=full)
        want = LINALG.svd(a, full_matrices=full)
        self.alike((u, s, vh), want)
        self.assertTrue(torch.equal(s, LINALG.svdvals(moved)), "values with and without vectors")
        k, n = s.shape[-1], max(a.shape[-2:])
        if a.numel() == 0:
            for ours, theirs in zip((u, s, vh), want):
                self.assertTrue(torch.equal(ours.cpu(), theirs))
            return
        eps = (2 * n if equal else 8 * n**0.5) * EPS[a.dtype]
        largest = want[1].max().item()
        tiny = torch.finfo(a.dtype).tiny
        self.near(s, want[1], eps * largest + tiny, "values")
        ordered = s.cpu()
        self.assertTrue((ordered[..., 1:] <= ordered[..., :-1]).all() and (ordered >= 0).all())
        u, s, vh = (exact(t) for t in (u, s, vh))
        product = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        self.near(product, exact(a), eps * largest + tiny, "product")
        for name, q in (("U", u), ("V", vh.mH)):
            self.orthonormal(q, eps, name)


setUpModule = without_lapack


class Values(gpu_style.InGpuStyle, Case):
    def test_kinds_of_matrices(self) -> None:
        torch.manual_seed(1)
        for dtype in TYPES:
            for shape in some(SHAPES, dtype):
                for name, a in matrices(*shape, dtype).items():
                    for full in (False, True)[dtype.is_complex :]:
                        with self.subTest(name=name, shape=shape, dtype=dtype, full=full):
                            self.check(a, full, name == "ones")

    def test_empty(self) -> None:
        for shape in ((0, 0), (0, 3), (3, 0), (0, 4, 3), (2, 0, 5), (2, 5, 0), (2, 0, 3, 3)):
            for full in (False, True):
                with self.subTest(shape=shape, full=full):
                    self.check(torch.empty(shape), full)

    def test_batches(self) -> None:
        torch.manual_seed(2)
        for shape in ((3, 5, 4), (2, 3, 4, 6), (70, 33, 33), (65, 66, 70), (3, 130, 70), (1, 1, 2)):
            with self.subTest(shape=shape):
                self.check(torch.randn(shape), True)
        mixed = torch.stack(list(matrices(20, 12, torch.float32).values())[:-3])
        self.check(mixed, False)

    def test_layouts(self) -> None:
        torch.manual_seed(3)
        a = torch.randn(3, 40, 35)
        want = self.same_of_every_layout(LINALG.svd, a)
        one = a[:1].expand(4, -1, -1)
        self.assertTrue(torch.equal(LINALG.svdvals(one.to("ocl"))[3], want[1][0]))

    def test_out(self) -> None:
        a = torch.randn(2, 6, 4)
        outs = [torch.empty(0, device="ocl") for _ in range(3)]
        LINALG.svd(a.to("ocl"), out=tuple(outs))
        self.equal(outs, LINALG.svd(a.to("ocl")))
        values = torch.empty(2, 8, device="ocl")[:, ::2]
        LINALG.svdvals(a.to("ocl"), out=values)
        self.assertTrue(torch.equal(values, outs[1]))


@gpu_style.of_operators
class Derived(Case):
    """What ATen makes of singular values."""

    FUNCTIONS = {
        "pinv": LINALG.pinv,
        "pinverse": torch.pinverse,
        "pinv limit": lambda a: LINALG.pinv(a, atol=0.1, rtol=0.01),
        "svdvals": LINALG.svdvals,
        "cond": LINALG.cond,
        "cond -2": lambda a: LINALG.cond(a, -2),
        "norm 2": lambda a: LINALG.matrix_norm(a, 2),
        "norm -2": lambda a: LINALG.matrix_norm(a, -2),
        "norm nuc": lambda a: LINALG.matrix_norm(a, "nuc"),
        "norm of others": lambda a: LINALG.norm(a, 2, dim=(0, 1)),
        "torch.norm": lambda a: torch.norm(a, "nuc", dim=(-2, -1)),
    }

    def inputs(self, dtype: torch.dtype):
        torch.manual_seed(4)
        for shape in ((5, 5), (3, 20, 12), (2, 12, 20), (70, 66)):
            # Far from singular: condition numbers below 40.
            yield torch.randn(shape, dtype=dtype) + 4 * torch.eye(*shape[-2:], dtype=dtype) * (
                max(shape[-2:]) ** 0.5
            )

    def test_values(self) -> None:
        for dtype in TYPES:
            for a in self.inputs(dtype):
                for name, f in self.FUNCTIONS.items():
                    with self.subTest(name=name, shape=list(a.shape), dtype=dtype):
                        want = f(a)
                        # condition number 40 times sqrt(n) eps, for the inverses
                        bound = 40 * max(a.shape) ** 0.5 * EPS[dtype] * want.abs().max().item()
                        self.near(f(a.to("ocl")), want, bound, name)

    def test_ranks(self) -> None:
        torch.manual_seed(5)
        for dtype in (torch.float32, torch.float64):
            for shape in ((1, 1), (9, 9), (30, 8), (8, 30), (70, 66)):
                for name in ("random", "zeros", "rank deficient", "repeated values", "ones"):
                    a = matrices(*shape, dtype)[name]
                    with self.subTest(name=name, shape=shape, dtype=dtype):
                        self.assertEqual(
                            LINALG.matrix_rank(a.to("ocl")).item(), LINALG.matrix_rank(a).item()
                        )

    def test_inverse_of_deficient_matrices(self) -> None:
        """The four equations of Penrose."""
        torch.manual_seed(6)
        for shape in ((6, 4), (40, 30), (4, 9, 12)):
            a = torch.randn(*shape[:-1], 2, dtype=torch.float64) @ torch.randn(
                *shape[:-2], 2, shape[-1], dtype=torch.float64
            )
            b = LINALG.pinv(a.to("ocl")).cpu()
            size = 100 * EPS[torch.float64] * a.abs().max().item() * b.abs().max().item()
            for name, x, y in (
                ("aba", a @ b @ a, a),
                ("bab", b @ a @ b, b),
                ("ab", a @ b, (a @ b).mT),
                ("ba", b @ a, (b @ a).mT),
            ):
                with self.subTest(name=name, shape=shape):
                    self.near(x, y, size * max(shape) * max(x.abs().max().item(), 1), name)

    def test_least_squares(self) -> None:
        torch.manual_seed(7)
        for shape, rank in (
            ((7, 4), 4),
            ((7, 4), 2),
            ((4, 7), 4),
            ((2, 40, 35), 35),
            ((3, 5, 5), 3),
        ):
            dtype = torch.complex128 if len(shape) == 3 else torch.float64
            a = torch.randn(*shape[:-1], rank, dtype=dtype) @ torch.randn(
                *shape[:-2], rank, shape[-1], dtype=dtype
            )
            if rank == min(shape[-2:]):
                a = a + 9 * torch.eye(*shape[-2:], dtype=dtype)
            b = torch.randn(*shape[:-1], 3, dtype=dtype)
            for driver in ("gelsy", "gelsd", "gelss"):
                with self.subTest(driver=driver, shape=shape, rank=rank):
                    ours = LINALG.lstsq(a.to("ocl"), b.to("ocl"), driver=driver)
                    for got, want in zip(ours, LINALG.lstsq(a, b, driver=driver)):
                        size = max(want.abs().max().item(), 1) if want.numel() else 1
                        self.near(got, want, 1e-11 * size, driver)
        empty = LINALG.lstsq(
            torch.ones(2, 5, 0, device="ocl"), torch.ones(2, 5, 2, device="ocl"), driver="gelsd"
        )
        self.assertEqual([list(t.shape) for t in empty], [[2, 0, 2], [2, 2], [2], [2, 0]])


@gpu_style.of_operators
class Gradients(Case):
    FUNCTIONS = Derived.FUNCTIONS | {
        "product": lambda a: (lambda u, s, vh: u * s.square()[..., None, :] @ vh)(
            *LINALG.svd(a, full_matrices=False)
        ),
        "lstsq": lambda a: LINALG.lstsq(a, a[..., :2], driver="gelsd")[0],
    }

    def test_gradients(self) -> None:
        torch.manual_seed(8)
        for shape in ((5, 5), (9, 6), (2, 9, 6), (2, 6, 9), (2, 5, 5), (66, 40)):
            dtype = torch.complex128 if shape[0] == 2 else torch.float64
            a = torch.randn(shape, dtype=dtype) + 4 * torch.eye(*shape[-2:])
            for name, f in self.FUNCTIONS.items():
                with self.subTest(name=name, shape=shape):
                    # Formulas divide by differences of squared values, which are some 1e-2 here.
                    self.near_gradients(f, a, 1e-9, name)


class Failures(Case):
    def test_not_finite(self) -> None:
        """NaN is the CPU's error. Infinities are, too: there LAPACK gives NaN or does not end."""
        for bad in (float("nan"), float("inf"), -float("inf")):
            for shape, place in (
                ((3, 3), (1, 2)),
                ((2, 4, 3), (1, 0, 0)),
                ((3, 70, 80), (1, 9, 70)),
            ):
                a = torch.randn(shape)
                a[place] = bad
                for f in (LINALG.svd, LINALG.svdvals, LINALG.pinv, LINALG.matrix_rank):
                    with self.subTest(bad=bad, shape=shape, f=f.__name__):
                        nan = torch.where(a.isinf(), float("nan"), a)
                        want = self.failure(f, nan, "cpu")
                        self.assertEqual(self.failure(f, a, "ocl"), want)
                        self.assertIs(want[0], LINALG.LinAlgError)

    def test_wrong_arguments(self) -> None:
        a = torch.ones(3, 3)
        self.fails_as_on_the_cpu(
            (
                ("vector", LINALG.svdvals, torch.ones(3)),
                ("integers", LINALG.svd, a.int()),
                ("driver", lambda a: LINALG.svd(a, driver="gesvd"), a),
                ("lstsq", lambda a: LINALG.lstsq(a, a, driver="x"), a),
            )
        )
        self.refuses_half(LINALG.svd)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
