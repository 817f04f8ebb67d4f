"""Eigenvalues of general matrices and LDL^T factorisations on ocl, real and complex, against
PyTorch's CPU: values, properties of vectors and factors, gradients, layouts, failures."""

import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from spectral_case import TYPES, SpectralCase, without_lapack

LINALG = torch.linalg
SIZES = (1, 2, 3, 7, 33, 70) if gpu_style.IS_GPU_STYLE else (1, 2, 3, 4, 7, 16, 33, 65, 100)


def matrices(n: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Matrices that are hard in different ways."""
    random = torch.randn(n, n, dtype=dtype)
    real = random.real if dtype.is_complex else random
    one = torch.eye(n, dtype=dtype)
    shift = torch.zeros(n, n, dtype=dtype)
    shift.diagonal(1).fill_(1)
    turns = torch.zeros(n, n, dtype=dtype)
    turns.diagonal(1)[::2] = torch.arange(1, n // 2 + 1).to(dtype)
    companion = shift.mT.clone()
    companion[:, -1] = random[0]
    sizes = torch.logspace(0, -9, n, dtype=real.dtype)
    return {
        "random": random,
        "symmetric": random + random.mT,
        "skew": random - random.mT,
        "zeros": torch.zeros(n, n, dtype=dtype),
        "identity": one,
        "ones": torch.ones(n, n, dtype=dtype),
        "triangle": random.triu(),
        "nilpotent": shift,
        "jordan": shift + 2 * one,
        "cycle": one.roll(1, 0),
        "companion": companion,
        "turns": turns - turns.mT,
        "grcar": one - shift.mT + shift + shift @ shift,
        "graded": random * sizes,
        "unbalanced": random * sizes / sizes[:, None],
        "large": random * 1e30,
        "small": random * 1e-30,
        "real in complex": (random if not dtype.is_complex else real.to(dtype)),
    }


def exactly(a: torch.Tensor) -> torch.Tensor:
    return a.cpu().to(torch.complex128)


class Case(SpectralCase):
    def check(self, a: torch.Tensor, balanced: bool = False) -> None:
        """QR steps leave errors of some eps of the Frobenius norm, which grow like sqrt(n), in
        A V - V L; scaling by a diagonal D makes them those of D^-1 A D, whose columns of V have
        other lengths: such matrices are compared by the errors that LAPACK makes."""
        moved = a.to("ocl")
        values, vectors = LINALG.eig(moved)
        try:
            want = LINALG.eig(a)
        except LINALG.LinAlgError:  # MKL 2024.2 on some processors, for equal numbers
            self.assertFalse(balanced)
            want = LINALG.eig(torch.randn_like(a))  # for its types and strides
        self.alike((values, vectors), want)
        if a.numel() == 0:
            return
        alone = LINALG.eigvals(moved)
        self.assertEqual((alone.shape, alone.dtype), (values.shape, values.dtype))
        a, values, v = exactly(a), exactly(values), exactly(vectors)
        n = a.shape[-1]
        eps = torch.finfo(want[0].dtype).eps
        size = torch.linalg.matrix_norm(a).clamp_min(torch.finfo(want[0].dtype).tiny)
        bound = 16 * max(n, 4) ** 0.5 * eps

        def rest(w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return (a @ v - v * w[..., None, :]).abs().amax((-2, -1)) / size

        off = rest(values, v)
        limit = bound + (8 * rest(exactly(want[0]), exactly(want[1])) if balanced else 0)
        self.assertTrue((off <= limit).all(), f"A V = V L: {off} > {limit}")
        lengths = torch.linalg.vector_norm(v, dim=-2)
        # sums of equal numbers round the same way each time
        self.near(lengths, torch.ones_like(lengths), (8 + n / 4) * eps, "lengths")
        # eigenvalues may be far off, but not their sum
        for found in (values, exactly(alone)):
            trace = a.diagonal(dim1=-2, dim2=-1).sum(-1)
            self.assertTrue(((found.sum(-1) - trace).abs() <= n * bound * size).all(), "trace")

    def near_set(self, got: torch.Tensor, want: torch.Tensor, bound: float) -> None:
        distance = (got.cpu()[:, None] - want[None]).abs()
        self.assertLessEqual(
            max(distance.amin(0).max().item(), distance.amin(1).max().item()), bound
        )


setUpModule = without_lapack


class Values(gpu_style.InGpuStyle, Case):
    def test_kinds_of_matrices(self) -> None:
        torch.manual_seed(1)
        for dtype in TYPES:
            for n in SIZES:
                for name, a in matrices(n, dtype).items():
                    with self.subTest(name=name, n=n, dtype=dtype):
                        self.check(a, balanced=name in ("graded", "unbalanced"))

    def test_values(self) -> None:
        """Matrices with well-conditioned eigenvalues: these are near LAPACK's in float64."""
        torch.manual_seed(2)
        for dtype in TYPES:
            for n in (1, 2, 5, 20, 64):
                a = torch.randn(n, n, dtype=dtype) / n + torch.diag(torch.arange(n).to(dtype))
                want = LINALG.eigvals(exactly(a))
                bound = 64 * n * torch.finfo(dtype).eps
                with self.subTest(n=n, dtype=dtype):
                    for got in (LINALG.eigvals(a.to("ocl")), LINALG.eig(a.to("ocl"))[0]):
                        self.near_set(exactly(got), want, bound)

    def test_conjugate_pairs(self) -> None:
        """Of a real matrix, real eigenvalues and their vectors have no imaginary part, and the
        others come in exact pairs, the one with the positive imaginary part first."""
        torch.manual_seed(3)
        for dtype in (torch.float32, torch.float64):
            pairs = 0
            for n in (2, 3, 9, 40):
                values, vectors = LINALG.eig(torch.randn(20, n, n, dtype=dtype, device="ocl"))
                for w, v in zip(values.cpu(), vectors.cpu()):
                    k = 0
                    while k < n:
                        if w[k].imag == 0:
                            self.assertEqual(v[:, k].imag.abs().max(), 0)
                        else:
                            self.assertGreater(w[k].imag, 0)
                            self.assertEqual(w[k + 1], w[k].conj())
                            self.assertTrue(torch.equal(v[:, k + 1], v[:, k].conj().resolve_conj()))
                            pairs, k = pairs + 1, k + 1
                        k += 1
            self.assertGreater(pairs, 20)

    def test_largest_element_is_real(self) -> None:
        torch.manual_seed(4)
        for dtype in TYPES:
            vectors = LINALG.eig(torch.randn(6, 6, dtype=dtype, device="ocl"))[1].cpu()
            for v in vectors.mT:
                self.assertEqual(v[v.abs().argmax()].imag, 0)

    def test_empty(self) -> None:
        for dtype in TYPES:
            for shape in ((0, 0), (0, 4, 4), (2, 0, 0), (2, 0, 3, 3)):
                with self.subTest(shape=shape):
                    self.check(torch.empty(shape, dtype=dtype))

    def test_batches(self) -> None:
        torch.manual_seed(5)
        for dtype in TYPES:
            for shape in ((3, 5, 5), (2, 3, 4, 4), (20, 33, 33), (1, 1, 1), (300, 2, 2)):
                with self.subTest(shape=shape, dtype=dtype):
                    self.check(torch.randn(shape, dtype=dtype))

    def test_layouts(self) -> None:
        torch.manual_seed(6)
        for dtype in (torch.float32, torch.complex128):
            a = torch.randn(3, 20, 20, dtype=dtype)
            want = self.same_of_every_layout(LINALG.eig, a)
            one = a[:1].expand(4, -1, -1)
            self.assertTrue(torch.equal(LINALG.eig(one.to("ocl"))[0][3], want[0][0]))
        conj = torch.randn(5, 5, dtype=torch.complex64)
        self.assertTrue(
            torch.equal(
                LINALG.eigvals(conj.to("ocl").conj()),
                LINALG.eigvals(conj.conj().resolve_conj().to("ocl")),
            )
        )

    def test_out(self) -> None:
        a = torch.randn(2, 6, 6, device="ocl")
        want = LINALG.eig(a)
        for dtype in (torch.complex64, torch.complex128):
            outs = [torch.empty(0, device="ocl", dtype=dtype) for _ in range(2)]
            LINALG.eig(a, out=tuple(outs))
            for ours, theirs in zip(outs, want):
                self.assertTrue(torch.equal(ours, theirs.to(dtype)))
        values = torch.empty(2, 12, device="ocl", dtype=torch.complex64)[:, ::2]
        LINALG.eigvals(a, out=values)
        self.assertTrue(torch.equal(values, LINALG.eigvals(a)))


@unittest.skipUnless(gpu_style.IS_GPU_STYLE, "GPUs only")
class Multishift(Case):
    """Sweeps with many shifts, which large matrices take."""

    def choice(self) -> str:
        return torch.backends.ocl.last_choices()["eig"]

    def test_choice(self) -> None:
        for shape, want in (((96, 96), "qr"), ((97, 97), "multishift"), ((2, 97, 97), "qr")):
            LINALG.eigvals(torch.randn(shape, device="ocl"))
            self.assertEqual(self.choice(), f"eig.{want}", shape)

    def test_kinds_of_matrices(self) -> None:
        torch.manual_seed(13)
        for dtype in (torch.float32, torch.complex128):
            for name, a in matrices(100, dtype).items():
                with self.subTest(name=name, dtype=dtype):
                    self.check(a, balanced=name in ("graded", "unbalanced"))

    def test_small(self) -> None:
        """Where nothing else may run: a sweep is not needed for each of these."""
        torch.manual_seed(10)
        with torch.backends.ocl.algorithms_disabled("eig.qr"):
            for dtype in TYPES:
                for shape in ((1, 1), (2, 2), (3, 25, 25), (2, 49, 49)):
                    with self.subTest(shape=shape, dtype=dtype):
                        self.check(torch.randn(shape, dtype=dtype))
                        self.assertEqual(self.choice(), "eig.multishift")

    def test_several_chains(self) -> None:
        """Sizes for which several chains of bulges are on their way at once; pairs are exact."""
        torch.manual_seed(11)
        for dtype in TYPES:
            for shape in ((200, 200), (2, 130, 130))[: 2 if dtype == torch.float32 else 1]:
                a = torch.randn(shape, dtype=dtype)
                with self.subTest(shape=shape, dtype=dtype):
                    self.check(a)
                    self.assertEqual(self.choice(), "eig.multishift")
                    if dtype.is_complex:
                        continue
                    for values in LINALG.eigvals(a.to("ocl")).cpu().reshape(-1, shape[-1]):
                        above, below = (values[values.imag * s > 0] for s in (1, -1))
                        self.assertGreater(len(above), 20)
                        self.assertTrue(torch.equal(above, below.conj()))

    def test_values(self) -> None:
        """Matrices with well-conditioned eigenvalues, which split in the middle, or need shifts
        that are no eigenvalues of a part: a cycle's parts have zeros alone."""
        torch.manual_seed(12)
        n = 150
        for dtype in (torch.float32, torch.complex128):
            random = torch.randn(n, n, dtype=dtype)
            q = LINALG.qr(random)[0]
            cycle = torch.eye(n, dtype=dtype).roll(1, 0)
            for name, a in {
                "spread": random / n + torch.diag(torch.arange(n).to(dtype)),
                "orthogonal": q,
                "three values": q @ torch.diag((torch.arange(n) % 3).to(dtype)) @ q.mH,
                "cycle": cycle,
                "blocks": torch.block_diag(cycle[:70, 1:71], random[:80, :80].triu(-1).tril(1)),
            }.items():
                want = LINALG.eigvals(exactly(a))
                size = want.abs().max().item()
                bound = 64 * n * torch.finfo(dtype).eps * size
                with self.subTest(name=name, dtype=dtype):
                    for got in (LINALG.eigvals(a.to("ocl")), LINALG.eig(a.to("ocl"))[0]):
                        self.near_set(exactly(got), want, bound)

    def test_not_finite(self) -> None:
        for dtype in TYPES:
            a = torch.randn(100, 100, dtype=dtype)
            a[70, 3] = float("inf")
            with self.subTest(dtype=dtype):
                self.assertIn("infs or NaNs", self.failure(LINALG.eigvals, a, "ocl")[1])


class Failures(Case):
    def test_not_finite(self) -> None:
        text = "torch.linalg.eig: input tensor should not contain infs or NaNs."
        for dtype in TYPES:
            for bad in (float("nan"), float("inf"), -float("inf")):
                a = torch.randn(2, 4, 4, dtype=dtype)
                a[1, 2, 0] = bad
                with self.subTest(bad=bad, dtype=dtype):
                    self.assertEqual(self.failure(LINALG.eig, a, "ocl"), (RuntimeError, text))
                    self.assertEqual(
                        self.failure(LINALG.eig, a, "cpu"), self.failure(LINALG.eig, a, "ocl")
                    )
                    self.assertIn(  # on the CPU, LAPACK may crash
                        "infs or NaNs", self.failure(LINALG.eigvals, a, "ocl")[1]
                    )

    def test_wrong_arguments(self) -> None:
        for f in (LINALG.eig, LINALG.eigvals):
            for x in (torch.ones(3), torch.ones(3, 4), torch.ones(3, 3, dtype=torch.int64)):
                with self.subTest(f=f.__name__, shape=x.shape):
                    self.assertEqual(self.failure(f, x, "ocl"), self.failure(f, x, "cpu"))
        with self.assertRaisesRegex(NotImplementedError, "float32, float64"):
            LINALG.eig(torch.ones(3, 3, device="ocl").half())

        def into(a: torch.Tensor) -> object:
            return LINALG.eig(
                a, out=(torch.empty(0, device=a.device), torch.empty(0, device=a.device))
            )

        self.assertEqual(
            self.failure(into, torch.ones(2, 2), "ocl"), self.failure(into, torch.ones(2, 2), "cpu")
        )


class Ldl(Case):
    def inputs(self, dtype: torch.dtype):
        torch.manual_seed(7)
        for shape in ((1, 1), (2, 2), (5, 5), (3, 17, 17), (2, 2, 9, 9), (70, 4, 4), (66, 66)):
            a = torch.randn(shape, dtype=dtype)
            yield "random", a
            hollow = a.clone()
            hollow.diagonal(dim1=-2, dim2=-1).zero_()
            if shape[-1] > 1:
                yield "hollow", hollow
            yield "definite", a @ a.mH + torch.eye(shape[-1], dtype=dtype)

    def test_factors_are_the_cpus(self) -> None:
        """The same pivots and, up to roundings that grow like n, the same factors: either device
        solves with the other's. Only the lower triangle is read."""
        for dtype in TYPES:
            for hermitian in (False, True):
                for name, a in self.inputs(dtype):
                    with self.subTest(name=name, shape=list(a.shape), dtype=dtype, h=hermitian):
                        want = LINALG.ldl_factor_ex(a, hermitian=hermitian)
                        dirty = a + torch.full_like(a, float("nan")).triu(1)
                        got = LINALG.ldl_factor_ex(dirty.to("ocl"), hermitian=hermitian)
                        self.assertEqual(got.LD.stride(), want.LD.stride())
                        self.assertTrue(torch.equal(got.pivots.cpu(), want.pivots))
                        self.assertTrue(torch.equal(got.info.cpu(), want.info))
                        n = a.shape[-1]
                        bound = 32 * n * torch.finfo(dtype).eps * want.LD.abs().max()
                        self.near_complex(got.LD, want.LD, bound)
                        self.check_solves(a, want, hermitian)

    def near_complex(self, got: torch.Tensor, want: torch.Tensor, bound: torch.Tensor) -> None:
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
        self.assertLessEqual((got.cpu() - want).abs().max(), bound)

    def check_solves(self, a: torch.Tensor, factors: tuple[torch.Tensor, ...], h: bool) -> None:
        """The same arithmetic on the same factors: backward errors of n eps."""
        b = torch.randn(*a.shape[:-1], 3, dtype=a.dtype)
        moved = [t.to("ocl") for t in factors[:2]]
        x = LINALG.ldl_solve(*moved, b.to("ocl"), hermitian=h)
        lower = a.tril(-1)
        whole = lower + (lower.mH if h else lower.mT)
        middle = a.diagonal(dim1=-2, dim2=-1)
        whole = exactly(whole + torch.diag_embed(middle.real.to(a.dtype) if h else middle))
        rest = (whole @ exactly(x) - exactly(b)).abs().amax()
        eps = torch.finfo(a.dtype).eps
        size = whole.abs().sum(-1).amax() * x.abs().max().cpu().item() + b.abs().max().item()
        self.assertLessEqual(rest.item(), 32 * a.shape[-1] * eps * size.item())

    def test_broadcast_and_layouts(self) -> None:
        torch.manual_seed(8)
        for dtype in TYPES:
            for hermitian in (False, True):
                a = torch.randn(2, 1, 6, 6, dtype=dtype)
                ld, pivots = LINALG.ldl_factor(a, hermitian=hermitian)
                b = torch.randn(3, 6, 4, dtype=dtype)
                # PyTorch's CPU does not broadcast pivots, and crashes.
                whole = ld.expand(2, 3, 6, 6), pivots.expand(2, 3, 6)
                want = LINALG.ldl_solve(*(t.contiguous() for t in whole), b, hermitian=hermitian)
                turned = b.mT.contiguous().to("ocl").mT
                args = ld.to("ocl"), pivots.to("ocl"), turned
                got = LINALG.ldl_solve(*args, hermitian=hermitian)
                self.assertEqual((got.shape, got.stride()), (want.shape, want.stride()))
                bound = 1e3 * torch.finfo(dtype).eps * want.abs().max()
                self.near_complex(got, want, bound)
                out = torch.empty(0, dtype=dtype, device="ocl")
                LINALG.ldl_solve(*args, hermitian=hermitian, out=out)
                self.assertTrue(torch.equal(out, got))

    def test_empty(self) -> None:
        for shape in ((0, 0), (0, 4, 4), (2, 0, 0)):
            want = LINALG.ldl_factor_ex(torch.empty(shape))
            got = LINALG.ldl_factor_ex(torch.empty(shape, device="ocl"))
            for ours, theirs in zip(got, want):
                self.assertTrue(torch.equal(ours.cpu(), theirs))
            b = torch.empty(*shape[:-1], 2)
            self.assertEqual(
                LINALG.ldl_solve(*got[:2], b.to("ocl")).shape, LINALG.ldl_solve(*want[:2], b).shape
            )

    def test_failures(self) -> None:
        zeros = torch.zeros(2, 3, 3)
        zeros[0] += torch.eye(3)
        for f in (
            LINALG.ldl_factor,
            lambda a: LINALG.ldl_factor_ex(a, check_errors=True),
            lambda a: LINALG.ldl_factor(a[:, :2]),
        ):
            self.assertEqual(self.failure(f, zeros, "ocl"), self.failure(f, zeros, "cpu"))
        for f in (
            lambda a: LINALG.ldl_solve(a, a[..., 0], a),
            lambda a: LINALG.ldl_solve(a, a[..., :2, 0].int(), a),
            lambda a: LINALG.ldl_solve(a, a[..., 0].int(), a.double()),
            lambda a: LINALG.ldl_solve(a, a[..., 0].int(), a[:, :2]),
        ):
            self.assertEqual(self.failure(f, zeros, "ocl"), self.failure(f, zeros, "cpu"))
        info = LINALG.ldl_factor_ex(torch.full((3, 3), float("nan"), device="ocl")).info
        self.assertGreater(info.item(), 0)


@gpu_style.of_operators
class Gradients(Case):
    def test_eigenvalues(self) -> None:
        """By PyTorch's formula, which solves with the eigenvectors: of real matrices with real
        eigenvalues its result is real up to roundings."""
        torch.manual_seed(9)
        for dtype in (torch.float64, torch.complex128):
            a = torch.randn(3, 6, 6, dtype=dtype) / 6 + torch.diag(torch.arange(6).to(dtype))

            def f(x: torch.Tensor) -> torch.Tensor:
                return LINALG.eigvals(x).abs().square().sum()

            grads = []
            for device in ("cpu", "ocl"):
                x = a.clone().to(device).requires_grad_()
                f(x).backward()
                grads.append(x.grad.cpu())
            self.assertLessEqual((grads[0] - grads[1]).abs().max(), 1e-11)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
