"""Eigenvalues, singular values and LU by LAPACK on the host, for devices that are CPUs: with a
library, without one, switched off; all types, layouts, failures, and the order of commands."""

import ctypes.util
import os
import unittest

import forked
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from spectral_case import SpectralCase

LINALG = torch.linalg
ocl = torch.backends.ocl
HAS_LAPACK = ocl.lapack.available and os.environ.get("OCLTENSOR_KERNEL_STYLE") != "gpu"
TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
# What a process prints that works with these settings: the algorithms that ran, and whether results
# are right.
PROGRAM = """
import torch, torch_ocl
ocl, LINALG = torch.backends.ocl, torch.linalg
torch.manual_seed(0)
a = torch.randn(40, 40)
a = a + a.mT
l, v = LINALG.eigh(a.to("ocl"))
s = LINALG.svdvals(a.to("ocl"))
w = LINALG.eigvals(a.to("ocl"))
few_rows = ocl.last_choices()["eig"]
with ocl.algorithms_disabled("eig.qr"):  # where another one can run
    w = LINALG.eigvals(a.to("ocl"))
right = (
    torch.allclose(l.cpu(), LINALG.eigvalsh(a), atol=1e-4)
    and torch.allclose(s.cpu(), LINALG.svdvals(a), atol=1e-4)
    and torch.allclose(w.cpu().real.sort()[0], LINALG.eigvalsh(a), atol=1e-4)
)
chosen = ocl.last_choices()
right = right and few_rows == "eig.qr"
print(*(chosen[f].split(".")[1] for f in ("eigh", "svd", "eig")), right, ocl.lapack.available)
"""


# The same for a batch, of which each matrix gets one of OpenBLAS's threads.
BATCH = """
import ctypes, torch, torch_ocl
blas = ctypes.CDLL("libopenblas.so.0")
blas.openblas_set_num_threads(2)
a = torch.randn(500, 8, 8)
l = torch.linalg.eigvalsh(a.to("ocl"))
right = torch.allclose(l.cpu(), torch.linalg.eigvalsh(a), atol=1e-4)
print(torch.backends.ocl.last_choices()["eigh"], right, blas.openblas_get_num_threads())
"""


def said(program: str = PROGRAM, **settings: str) -> str:
    run = forked.run(program, env=os.environ | settings)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


class Settings(unittest.TestCase):
    OWN = "jacobi jacobi qr True"

    def test_absent(self) -> None:
        for libraries in ("0", "libdoes_not_exist.so", "libdl.so.2", ":"):
            with self.subTest(libraries=libraries):
                self.assertEqual(said(OCLTENSOR_LAPACK=libraries), f"{self.OWN} False")

    @unittest.skipUnless(HAS_LAPACK, "SKIPPED: needs a device that is a CPU, and LAPACK")
    def test_present_and_switched_off(self) -> None:
        self.assertEqual(said(), "lapack lapack lapack True True")
        self.assertEqual(said(OCLTENSOR_DISABLED_PROVIDERS="lapack"), f"{self.OWN} True")
        self.assertEqual(
            said(OCLTENSOR_DISABLED_ALGORITHMS="eigh.lapack"), "jacobi lapack lapack True True"
        )
        self.assertEqual(said(OCLTENSOR_KERNEL_STYLE="gpu"), "small jacobi multishift True True")

    @unittest.skipUnless(
        HAS_LAPACK and ctypes.util.find_library("openblas"), "SKIPPED: needs OpenBLAS"
    )
    def test_threads_of_the_process_are_restored(self) -> None:
        self.assertEqual(said(BATCH, OCLTENSOR_LAPACK="libopenblas.so.0"), "eigh.lapack True 2")

    @unittest.skipUnless(HAS_LAPACK, "SKIPPED: needs a device that is a CPU, and LAPACK")
    def test_small_problems_stay_on_the_device(self) -> None:
        LINALG.eigvalsh(torch.eye(2, device="ocl"))
        self.assertEqual(ocl.last_choices()["eigh"], "eigh.jacobi")


@unittest.skipUnless(HAS_LAPACK, "SKIPPED: needs a device that is a CPU, and LAPACK")
class Values(SpectralCase):
    def check(self, family: str, got: torch.Tensor, want: torch.Tensor) -> None:
        """What A V - V L and U S V^H - A leave is some eps of the norm, as LAPACK promises."""
        self.assertEqual(ocl.last_choices()[family], f"{family}.lapack")
        eps = torch.finfo(got.dtype).eps
        off = (got.cpu() - want).abs().max()
        self.assertLessEqual(off, 64 * want.shape[-1] ** 0.5 * eps * want.abs().max())

    def inputs(self, dtype: torch.dtype, square: bool):
        torch.manual_seed(1)
        shapes = [(40, 40), (3, 33, 33), (2, 3, 30, 30), (1000, 6, 6)]
        for shape in shapes + ([] if square else [(50, 30), (5, 30, 50)]):
            yield torch.randn(shape, dtype=dtype)

    def test_eig(self) -> None:
        for dtype in TYPES:
            for a in self.inputs(dtype, True):
                with self.subTest(shape=list(a.shape), dtype=dtype):
                    with ocl.algorithms_disabled("eig.qr"):
                        values, vectors = (t.cpu() for t in LINALG.eig(a.to("ocl")))
                    wide = a.to(values.dtype)
                    self.check("eig", wide @ vectors, vectors * values[..., None, :])
                    lengths = LINALG.vector_norm(vectors, dim=-2)
                    self.near(lengths, torch.ones_like(lengths), 1e-4, "lengths")
                    moved = a.to("ocl").mT.contiguous().mT
                    with ocl.algorithms_disabled("eig.qr"):
                        again = LINALG.eigvals(moved).cpu()
                    self.assertLessEqual((again.sum(-1) - values.sum(-1)).abs().max(), 1e-2)

    def test_eigh(self) -> None:
        for dtype in TYPES:
            for a in self.inputs(dtype, True):
                for triangle in "LU":
                    with self.subTest(shape=list(a.shape), dtype=dtype, triangle=triangle):
                        nan = torch.full_like(a, float("nan"))
                        kept = a.tril() if triangle == "L" else a.triu()
                        other = nan.triu(1) if triangle == "L" else nan.tril(-1)
                        strict = kept.tril(-1) if triangle == "L" else kept.triu(1)
                        whole = kept + strict.mH
                        whole = (whole + whole.mH) / 2  # a diagonal of real numbers
                        values, vectors = LINALG.eigh((kept + other).to("ocl"), triangle)
                        self.assertEqual(vectors.stride(), LINALG.eigh(a)[1].stride())
                        values, vectors = values.cpu(), vectors.cpu()
                        self.check("eigh", whole @ vectors, vectors * values[..., None, :])
                        one = torch.eye(a.shape[-1], dtype=dtype).expand_as(a)
                        self.check("eigh", vectors.mH @ vectors, one)
                        self.assertTrue((values[..., 1:] >= values[..., :-1]).all())
                        alone = LINALG.eigvalsh((kept + other).to("ocl"), triangle)
                        self.check("eigh", alone, values)

    def test_svd(self) -> None:
        for dtype in TYPES:
            for a in self.inputs(dtype, False):
                for full in (False, True):
                    with self.subTest(shape=list(a.shape), dtype=dtype, full=full):
                        want = LINALG.svd(a, full_matrices=full)
                        got = LINALG.svd(a.to("ocl"), full_matrices=full)
                        for ours, theirs in zip(got, want):
                            self.assertEqual(
                                (ours.shape, ours.stride()), (theirs.shape, theirs.stride())
                            )
                        u, s, vh = (t.cpu() for t in got)
                        k = s.shape[-1]
                        product = u[..., :k] * s[..., None, :] @ vh[..., :k, :]
                        self.check("svd", product, a)
                        for v in (u, vh.mH):
                            one = torch.eye(v.shape[-1], dtype=dtype)
                            self.check("svd", v.mH @ v, one.expand(*v.shape[:-2], -1, -1))
                        self.check("svd", LINALG.svdvals(a.to("ocl")), s)

    def test_lu(self) -> None:
        """Every layout and batch, tall and wide; pivots as the CPU's."""
        torch.manual_seed(3)
        shapes = [(80, 80), (3, 100, 100), (2, 2, 96, 96), (90, 70), (5, 100, 120), (2, 120, 100)]
        for dtype in TYPES:
            for a in (torch.randn(shape, dtype=dtype) for shape in shapes):
                for moved in (
                    a.to("ocl"),
                    a.to("ocl").mT.contiguous().mT,
                    torch.cat([a, a], -1).to("ocl")[..., : a.shape[-1]],
                ):
                    with self.subTest(shape=list(a.shape), dtype=dtype, stride=moved.stride()):
                        want = LINALG.lu_factor_ex(a)
                        got = LINALG.lu_factor_ex(moved)
                        for ours, theirs in zip(got, want):
                            self.assertEqual(
                                (ours.shape, ours.stride()), (theirs.shape, theirs.stride())
                            )
                        p, lower, upper = torch.lu_unpack(got[0].cpu(), got[1].cpu())
                        self.check("lu", p @ lower @ upper, a)
                        self.assertTrue(torch.equal(got[1].cpu(), want[1]))

    def test_solve_and_inverse(self) -> None:
        """What A X - B leaves; B may broadcast, stand on either side, and be a vector."""
        torch.manual_seed(4)
        for dtype in TYPES:
            for batch in ((), (3,)):
                n = 100 if batch else 80  # many of fewer rows stay on the device
                one = torch.eye(n, dtype=dtype)
                a = torch.randn(*batch, n, n, dtype=dtype) + 2 * n**0.5 * one
                sides = [(*batch, n, 5), (*batch, n), (n, 7), (1, n, 1)]
                for shape in sides if batch else sides[:2]:
                    with self.subTest(batch=batch, shape=shape, dtype=dtype):
                        b = torch.randn(shape, dtype=dtype)
                        x = LINALG.solve(a.to("ocl"), b.to("ocl"))
                        self.assertEqual(x.stride(), LINALG.solve(a, b).stride())
                        product = a @ x.cpu() if x.dim() == len(batch) + 2 else (
                            (a @ x.cpu()[..., None])[..., 0]
                        )  # fmt: skip
                        self.check("lu", product, b.expand_as(product))
                rows = torch.randn(*batch, 6, n, dtype=dtype)
                x = LINALG.solve(a.to("ocl"), rows.to("ocl"), left=False)
                self.assertEqual(x.stride(), LINALG.solve(a, rows, left=False).stride())
                self.check("lu", x.cpu() @ a, rows)
                self.check("lu", a @ LINALG.inv(a.to("ocl")).cpu(), one.expand_as(a))

    def test_lu_of_bad_matrices(self) -> None:
        """A zero pivot is told by its number; NaN goes where kernels for CPUs put it."""
        a = torch.randn(80, 80)
        a[:, 7] = 0
        self.assertEqual(LINALG.lu_factor_ex(a.to("ocl"))[2].item(), 8)
        with self.assertRaisesRegex(LINALG.LinAlgError, "singular"):
            LINALG.solve(a.to("ocl"), a.to("ocl"))
        for bad in (float("nan"), float("inf")):
            for place in ((0, 0), (3, 5), (79, 79)):
                with self.subTest(bad=bad, place=place):
                    b = torch.randn(80, 80)
                    b[place] = bad
                    got = LINALG.lu_factor_ex(b.to("ocl"))
                    self.assertEqual(ocl.last_choices()["lu"], "lu.lapack")
                    with ocl.algorithms_disabled("lu.lapack"):
                        want = LINALG.lu_factor_ex(b.to("ocl"))
                    self.assertTrue(torch.equal(got[1], want[1]))
                    self.assertTrue(torch.equal(got[0].isnan(), want[0].isnan()))

    def test_graphs_get_kernels(self) -> None:
        a = torch.randn(80, 80, device="ocl")
        want = LINALG.inv(a)
        self.assertEqual(ocl.last_choices()["lu"], "lu.lapack")
        with ocl.algorithms_disabled("lu.lapack"):
            LINALG.inv_ex(a)  # compiles
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            got = LINALG.inv_ex(a)[0]
        self.assertEqual(ocl.last_choices()["lu"], "lu.panels")
        graph.replay()
        self.near(got, want, 1e-3, "the graph's inverse")

    def test_order_of_commands(self) -> None:
        """LAPACK reads what earlier commands write, later ones read what it wrote, and memory that
        it has used can be used again."""
        torch.manual_seed(2)
        start = torch.randn(256, 256)
        x = start.to("ocl")
        want = start
        for _ in range(3):
            for _ in range(5):
                x, want = (t @ t.mT / t.norm() for t in (x, want))
            values, vectors = LINALG.eigh(x)
            x = vectors * values @ vectors.mT + 1
            values, vectors = LINALG.eigh(want)
            want = vectors * values @ vectors.mT + 1
        self.near(x, want, 1e-3, "the chain")

    def test_streams(self) -> None:
        a = torch.randn(64, 64, device="ocl")
        a = a + a.mT
        want = LINALG.eigvalsh(a)
        stream = torch.ocl.Stream()
        stream.wait_stream(torch.ocl.current_stream())
        with torch.ocl.stream(stream):
            got = LINALG.eigvalsh(a + 0)
        stream.synchronize()
        self.assertTrue(torch.equal(got, want))

    def test_not_finite(self) -> None:
        for shape in ((40, 40), (1000, 6, 6)):
            for bad in (float("nan"), float("inf")):
                a = torch.randn(shape)
                a.view(-1, *shape[-2:])[-1, 3, 2] = bad
                for f, text in (
                    (LINALG.eigh, "linalg.eigh"),
                    (LINALG.svd, "linalg.svd"),
                    (LINALG.eig, "infs or NaNs"),
                ):
                    with (
                        self.subTest(shape=shape, bad=bad, f=f.__name__),
                        ocl.algorithms_disabled("eig.qr"),
                    ):
                        self.assertIn(text, self.failure(f, a, "ocl")[1])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
