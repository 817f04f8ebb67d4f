"""Dense linear algebra on ocl against PyTorch's CPU: values, gradients, layouts, failures, backward
errors."""

import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from spectral_case import EPS, TYPES

SIZES = (0, 1, 2, 7, 16, 33, 64, 100, 257)
# QR of complex matrices of more than 64 rows ends otherwise in MKL, whose last diagonal element is
# not real, as LAPACK's and ours are.
COMPLEX_SIZES = (1, 7, 33, 64)
if not gpu_style.THOROUGH:
    SIZES = (0, 7, 64, 257) if gpu_style.IS_GPU_STYLE else (0, 1, 7, 33, 64, 257)
    COMPLEX_SIZES = (1, 33) if gpu_style.IS_GPU_STYLE else COMPLEX_SIZES
LINALG = torch.linalg


def leaves(value) -> list[torch.Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def dominant(*shape: int, dtype=torch.float32) -> torch.Tensor:
    """Well conditioned: random elements, n more on the diagonal, so that condition numbers stay
    below 10."""
    a = torch.randn(shape, dtype=dtype)
    a.diagonal(0, -2, -1).add_(2 * max(shape[-2:]))
    return a


def positive(*shape: int, dtype=torch.float32) -> torch.Tensor:
    a = torch.randn(shape, dtype=dtype)
    return a @ a.mH / max(shape[-1], 1) + torch.eye(shape[-1], dtype=dtype)


def layouts(a: torch.Tensor):
    """The same values in several memory layouts."""
    yield "rows", a
    yield "columns", a.mT.contiguous().mT
    wide = a.new_full((*a.shape[:-2], 2 * a.shape[-2], 3 * a.shape[-1]), float("nan"))
    wide[..., ::2, 1::3] = a
    yield "gaps", wide[..., ::2, 1::3]


class Case(unittest.TestCase):
    def agree(self, ours, theirs, scale: float = 1) -> None:
        """Backward stable algorithms on matrices with small condition numbers: n eps of the largest
        element, with room for other orders of summation."""
        got, want = leaves(ours), leaves(theirs)
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            if not (b.is_floating_point() or b.is_complex()):
                self.assertTrue(torch.equal(a.cpu(), b))
                continue
            n = max([*b.shape[-2:], 1])
            largest = b.detach().abs().max().item() if b.numel() else 0
            bound = 8 * scale * n**0.5 * EPS[b.dtype] * max(largest, 1e-30) + 1e-37
            torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=0, atol=bound)

    def both(self, f, *args: torch.Tensor, scale: float = 1) -> None:
        self.agree(f(*[a.to("ocl") for a in args]), f(*args), scale)


# name: function of (general square matrix, positive definite matrix, right-hand sides)
FUNCTIONS = {
    "cholesky": lambda a, s, b: LINALG.cholesky(s),
    "cholesky upper": lambda a, s, b: LINALG.cholesky(s, upper=True),
    "cholesky_ex": lambda a, s, b: LINALG.cholesky_ex(s),
    "torch.cholesky": lambda a, s, b: torch.cholesky(s, upper=True),
    "cholesky_solve": lambda a, s, b: torch.cholesky_solve(b, s.tril()),
    "cholesky_inverse": lambda a, s, b: torch.cholesky_inverse(
        LINALG.cholesky(s, upper=True), upper=True
    ),
    "solve_triangular": lambda a, s, b: LINALG.solve_triangular(a, b, upper=True),
    "solve_triangular lower": lambda a, s, b: LINALG.solve_triangular(a, b, upper=False),
    "solve_triangular right": lambda a, s, b: LINALG.solve_triangular(
        a, b.mT, upper=True, left=False
    ),
    "solve_triangular unit": lambda a, s, b: LINALG.solve_triangular(
        a / (10.0 * max(a.shape[-1], 1)), b, upper=False, unitriangular=True
    ),
    "triangular_solve": lambda a, s, b: torch.triangular_solve(b, a, upper=False, transpose=True),
    "lu_factor_ex": lambda a, s, b: LINALG.lu_factor_ex(a.flip(-2)),
    "lu": lambda a, s, b: LINALG.lu(a.roll(3, -2)),
    "lu wide": lambda a, s, b: LINALG.lu(a[..., : a.shape[-1] // 2, :].flip(-2)),
    "lu tall": lambda a, s, b: LINALG.lu(a[..., : a.shape[-1] // 2].flip(-2)),
    "lu_solve": lambda a, s, b: LINALG.lu_solve(*LINALG.lu_factor(a.flip(-2)), b),
    "lu_solve adjoint": lambda a, s, b: LINALG.lu_solve(
        *LINALG.lu_factor(a.flip(-2)), b, adjoint=True
    ),
    "lu_solve right": lambda a, s, b: LINALG.lu_solve(
        *LINALG.lu_factor(a.flip(-2)), b.mT, left=False
    ),
    "solve": lambda a, s, b: LINALG.solve(a.flip(-1), b),
    "solve right": lambda a, s, b: LINALG.solve(a.flip(-1), b.mT, left=False),
    "inv": lambda a, s, b: LINALG.inv(a.roll(1, -1)),
    "inv_ex": lambda a, s, b: LINALG.inv_ex(a),
    "det": lambda a, s, b: LINALG.det(a / (2.0 * max(a.shape[-1], 1))),
    "slogdet": lambda a, s, b: LINALG.slogdet(a.flip(-1)),
    "qr": lambda a, s, b: LINALG.qr(a),
    "qr wide": lambda a, s, b: LINALG.qr(a[..., : (a.shape[-1] + 1) // 2, :]),
    "qr complete": lambda a, s, b: LINALG.qr(a[..., : (a.shape[-1] + 1) // 2], mode="complete"),
    "qr r": lambda a, s, b: LINALG.qr(a, mode="r")[1],
    "geqrf": lambda a, s, b: torch.geqrf(a),
    "householder_product": lambda a, s, b: LINALG.householder_product(*torch.geqrf(a)),
    "ormqr": lambda a, s, b: torch.ormqr(
        *torch.geqrf(a[..., : (a.shape[-1] + 1) // 2]), b, transpose=True
    ),
    "ormqr right": lambda a, s, b: torch.ormqr(*torch.geqrf(a), b.mT, left=False),
    "lstsq": lambda a, s, b: LINALG.lstsq(a[..., : (a.shape[-1] + 1) // 2], b, driver="gels")[0],
    "lstsq wide": lambda a, s, b: LINALG.lstsq(
        a[..., : (a.shape[-1] + 1) // 2, :], b[..., : (a.shape[-1] + 1) // 2, :], driver="gels"
    )[0],
    "matrix_exp": lambda a, s, b: LINALG.matrix_exp(a / (2.0 * max(a.shape[-1], 1))),
    "matrix_power": lambda a, s, b: LINALG.matrix_power(a / (2.0 * max(a.shape[-1], 1)), -3),
}


class Values(gpu_style.InGpuStyle, Case):
    OPTIMISED = False

    def test_sizes(self) -> None:
        torch.manual_seed(1)
        for dtype in TYPES:
            for n in COMPLEX_SIZES if dtype.is_complex else SIZES:
                args = (
                    dominant(n, n, dtype=dtype),
                    positive(n, n, dtype=dtype),
                    torch.randn(n, 5, dtype=dtype),
                )
                for name, f in FUNCTIONS.items():
                    with self.subTest(name=name, n=n, dtype=dtype):
                        self.both(f, *args, scale=4)

    def test_more_rows_than_a_group_has(self) -> None:
        """A Cholesky factorisation of two bands, a panel of LU whose rows no work-group holds."""
        torch.manual_seed(9)
        self.both(LINALG.cholesky, positive(1060, 1060), scale=4)
        self.both(lambda a: LINALG.lu_factor(a)[0], dominant(1060, 40), scale=4)

    def test_batches(self) -> None:
        torch.manual_seed(2)
        for batch in ((0,), (3,), (2, 1, 3), (2, 0)):
            for n in (0, 1, 5, 40):
                args = dominant(*batch, n, n), positive(*batch, n, n), torch.randn(*batch, n, 3)
                for name, f in FUNCTIONS.items():
                    with self.subTest(name=name, n=n, batch=batch):
                        self.both(f, *args, scale=4)

    def test_layouts(self) -> None:
        torch.manual_seed(3)
        a, s, b = dominant(2, 35, 35), positive(2, 35, 35), torch.randn(2, 35, 4)
        for name, f in FUNCTIONS.items():
            want = f(a, s, b)
            moved = [dict(layouts(t.to("ocl"))) for t in (a, s, b)]
            for layout in moved[0]:
                with self.subTest(name=name, layout=layout):
                    self.agree(f(*[m[layout] for m in moved]), want, scale=4)

    def test_broadcasting(self) -> None:
        torch.manual_seed(4)
        for left, right in (((3, 1), (2,)), ((), (2, 3)), ((2,), ()), ((1,), (0,))):
            with self.subTest(left=left, right=right):
                a, b = dominant(*left, 9, 9), torch.randn(*right, 9, 2)
                self.both(LINALG.solve, a, b, scale=4)
                self.both(lambda a, b: LINALG.solve_triangular(a, b, upper=True), a, b, scale=4)
                self.both(lambda a, b: LINALG.lu_solve(*LINALG.lu_factor(a), b), a, b, scale=4)
                self.both(lambda a, b: torch.cholesky_solve(b, a.tril()), a, b, scale=4)
        self.both(LINALG.solve, dominant(4, 6, 6), torch.randn(4, 6), scale=4)  # vectors

    def test_out(self) -> None:
        torch.manual_seed(5)
        a = dominant(4, 4).to("ocl")
        for out in (torch.empty(4, 4), torch.empty(0), torch.empty(4, 8)[:, ::2]):
            with self.subTest(strides=out.stride()):
                out = (
                    out.to("ocl")
                    if out.is_contiguous()
                    else torch.empty(4, 8, device="ocl")[:, ::2]
                )
                self.agree(LINALG.inv(a, out=out), LINALG.inv(a.cpu()))
                self.assertEqual(out.shape, a.shape)
        same = a.clone()
        LINALG.solve(a, same, out=same)
        self.agree(same, torch.eye(4))
        factor = positive(4, 4).to("ocl")
        want = LINALG.cholesky(factor.cpu())
        self.agree(LINALG.cholesky(factor, out=factor), want)

    def test_pivots_of_equal_candidates(self) -> None:
        a = torch.tensor([[1.0, 2, 3], [-1, 4, 1], [1, -1, 2]])
        self.both(LINALG.lu_factor_ex, a)

    def test_without_pivots(self) -> None:
        a = dominant(3, 40, 40)
        p, low, u = LINALG.lu(a.to("ocl"), pivot=False)
        self.assertEqual(p.numel(), 0)
        self.agree(low @ u, a, scale=4)

    def test_other_triangle_is_not_read(self) -> None:
        s = positive(40, 40)
        dirty = s.tril() + torch.full_like(s, float("nan")).triu(1)
        self.agree(LINALG.cholesky(dirty.to("ocl")), LINALG.cholesky(s), scale=4)
        b = torch.randn(40, 3)
        lower = dominant(40, 40).tril()
        dirty = lower + torch.full_like(s, float("nan")).triu(1)
        want = LINALG.solve_triangular(lower, b, upper=False)
        self.agree(
            LINALG.solve_triangular(dirty.to("ocl"), b.to("ocl"), upper=False), want, scale=4
        )


class Stability(Case):
    def test_backward_errors(self) -> None:
        """Ill-conditioned matrices: the solution may be far off, the residual may not. Partial
        pivoting and Householder reflections bound ||A x - b|| by about n eps ||A|| ||x|| (growth
        factors of random matrices are near n^(2/3)); a factor of 4 for that growth, in the norm of
        the largest row sum."""
        torch.manual_seed(6)
        for dtype in (torch.float32, torch.float64):
            for n in (7, 33, 100):
                rows = torch.arange(1, n + 1, dtype=dtype)
                graded = torch.randn(n, n, dtype=dtype) * torch.logspace(0, -6, n, dtype=dtype)
                # By themselves Hilbert matrices of this size are singular in floating point: a
                # pivot may be 0.
                hilbert = 1 / (rows[:, None] + rows - 1) + n * EPS[dtype] * torch.eye(
                    n, dtype=dtype
                )
                for name, a in (("hilbert", hilbert), ("graded", graded)):
                    b = torch.randn(n, 2, dtype=dtype)
                    for solver, f in {
                        "lu": LINALG.solve,
                        "qr": lambda a, b: LINALG.lstsq(a, b, driver="gels")[0],
                    }.items():
                        with self.subTest(name=name, solver=solver, n=n, dtype=dtype):
                            x = f(a.to("ocl"), b.to("ocl")).cpu().double()
                            rest = (a.double() @ x - b.double()).abs().amax()
                            size = a.double().abs().sum(-1).amax() * x.abs().amax()
                            self.assertLess((rest / (size * n * EPS[dtype])).item(), 4)

    def test_factors_rebuild_the_matrix(self) -> None:
        """n eps ||A||, whatever the condition number."""
        torch.manual_seed(7)
        for n in (16, 65, 129):
            a = torch.randn(n, n, device="ocl")
            bound = n * EPS[torch.float32] * a.abs().max().item() * 8
            q, r = LINALG.qr(a)
            p, low, u = LINALG.lu(a)
            for name, product in (("qr", q @ r), ("lu", p @ low @ u)):
                with self.subTest(name=name, n=n):
                    self.assertLess((product - a).abs().max().item(), bound)
            eye = torch.eye(n, device="ocl")
            self.assertLess((q.mT @ q - eye).abs().max().item(), n * EPS[torch.float32])

    def test_reflectors_of_what_cancelled(self) -> None:
        """Of equal columns nothing is left but roundings, then roundings of these, down to numbers
        that have no digits any more; Q is orthogonal all the same."""
        for dtype in (torch.float32, torch.float64):
            for n in (20, 50, 100):
                tiny = torch.randn(n, n, dtype=dtype) * torch.finfo(dtype).tiny
                for name, a in (("ones", torch.ones(n, n, dtype=dtype)), ("tiny", tiny)):
                    with self.subTest(name=name, n=n, dtype=dtype):
                        q = LINALG.qr(a.to("ocl"))[0].cpu().double()
                        off = (q.mT @ q - torch.eye(n, dtype=torch.float64)).abs().max().item()
                        self.assertLess(off, n * EPS[dtype])


@gpu_style.of_operators
class Gradients(Case):
    def test_gradients(self) -> None:
        torch.manual_seed(8)
        # ATen has no derivative of geqrf, and lacks some of QR's modes.
        skipped = {
            "geqrf",
            "householder_product",
            "ormqr",
            "ormqr right",
            "qr complete",
            "qr r",
        }
        for n in (1, 5, 6, 36):
            dtype = torch.complex128 if n == 6 else torch.float64
            inputs = [
                dominant(2, n, n, dtype=dtype),
                positive(2, n, n, dtype=dtype),
                torch.randn(2, n, n, dtype=dtype),
            ]
            for name, f in FUNCTIONS.items():
                if name in skipped:
                    continue
                with self.subTest(name=name, n=n):
                    grads = []
                    for device in ("cpu", "ocl"):
                        args = [t.to(device).requires_grad_() for t in inputs]
                        outs = [t for t in leaves(f(*args)) if t.requires_grad]
                        outs = [
                            torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
                            for t in outs
                        ]
                        weights = [torch.linspace(0.5, 2, t.numel()).view(t.shape) for t in outs]
                        total = sum((t * w.to(t)).sum() for t, w in zip(outs, weights))
                        grads.append(torch.autograd.grad(total, args, allow_unused=True))
                    for got, want in zip(grads[1], grads[0]):
                        self.assertEqual(got is None, want is None)
                        if want is not None:
                            self.agree(got, want, scale=1000)


class Failures(Case):
    def setUp(self) -> None:
        self.singular = torch.eye(40)
        self.singular[34, 34] = 0
        self.batch = torch.eye(40).repeat(3, 1, 1)
        self.batch[1] = self.singular

    def test_info(self) -> None:
        for a in (self.singular, self.batch, -self.batch, torch.zeros(2, 5, 5)):
            for f in (LINALG.cholesky_ex, LINALG.inv_ex, LINALG.lu_factor_ex):
                with self.subTest(f=f.__name__, shape=list(a.shape)):
                    got, want = f(a.to("ocl"))[-1], f(a)[-1]
                    self.assertEqual(got.dtype, torch.int32)
                    self.assertEqual(got.tolist(), want.tolist())

    def same_failure(self, f, *args: torch.Tensor) -> None:
        texts = []
        for device in ("cpu", "ocl"):
            try:
                f(*[a.to(device) for a in args])
                self.fail(f"no error on {device}")
            except (RuntimeError, ValueError) as error:
                texts.append((type(error), str(error)))
        self.assertEqual(texts[1], texts[0])

    def test_messages(self) -> None:
        calls = {
            "cholesky": LINALG.cholesky,
            "torch.cholesky": torch.cholesky,
            "cholesky_ex": lambda a: LINALG.cholesky_ex(a, check_errors=True),
            "cholesky_inverse": torch.cholesky_inverse,
            "inv": LINALG.inv,
            "inv_ex": lambda a: LINALG.inv_ex(a, check_errors=True),
            "lu_factor": LINALG.lu_factor,
            "lu_factor_ex": lambda a: LINALG.lu_factor_ex(a, check_errors=True),
            "solve": lambda a: LINALG.solve(a, a),
            "solve_ex": lambda a: LINALG.solve_ex(a, a, check_errors=True),
        }
        for name, f in calls.items():
            for a in (self.singular, self.batch):
                with self.subTest(name=name, dims=a.dim()):
                    self.same_failure(f, a)
        with self.assertRaises(LINALG.LinAlgError):
            LINALG.inv(self.singular.to("ocl"))

    def test_wrong_arguments(self) -> None:
        a, wide = torch.eye(3), torch.ones(3, 4)
        for name, f, args in (
            ("square", LINALG.cholesky, (wide,)),
            ("inv", LINALG.inv, (wide,)),
            ("vector", LINALG.qr, (torch.ones(3),)),
            ("mode", lambda a: LINALG.qr(a, mode="x"), (a,)),
            ("rows", lambda a, b: LINALG.solve_triangular(a, b, upper=True), (a, torch.ones(4, 2))),
            ("solve", LINALG.solve, (a, torch.ones(4, 2))),
            ("wide reflectors", LINALG.householder_product, (wide, torch.ones(3))),
            ("half", LINALG.inv, (a.half(),)),
            ("integer", LINALG.det, (a.int(),)),
            ("exp", LINALG.matrix_exp, (wide,)),
        ):
            with self.subTest(name=name):
                self.same_failure(f, *args)

    def test_not_a_number(self) -> None:
        """Nothing hangs, and NaN stays visible. (An infinite pivot makes zeros.)"""
        for bad in (float("nan"), float("inf")):
            a = torch.eye(40) * 3
            a[20, 3] = a[3, 20] = bad
            moved = a.to("ocl")
            results = (
                LINALG.inv(moved),
                LINALG.solve(moved, moved),
                LINALG.qr(moved)[1],
                LINALG.matrix_exp(moved),
            )
            for result in results if bad != bad else results[2:]:
                self.assertTrue(result.isnan().any())
            self.assertEqual(LINALG.cholesky_ex(moved)[1].item(), LINALG.cholesky_ex(a)[1].item())


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # ATen says that some are deprecated
