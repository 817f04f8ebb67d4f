"""COO tensors on ocl against PyTorch's CPU: construction, conversion, arithmetic, reductions,
products, gradients, wrong arguments."""

import io
import unittest

import torch
from sparse_case import COMPLEX, FLOATS, INTEGERS, Case, coo, dense, numbers

ALL = (*FLOATS, *COMPLEX, *INTEGERS, torch.bool)
# sizes, number of sparse dimensions
SHAPES = (((5, 7), 2), ((6,), 1), ((4, 3, 5), 3), ((5, 3, 2), 1), ((3, 4, 2), 2), ((0, 3), 2))
UNARY = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac log1p neg rad2deg relu "
    "round sgn sign sin sinh sqrt tan tanh trunc"
).split()


class Forms(Case):
    def test_move(self) -> None:
        for dtype in ALL:
            for sizes, sparse_dim in SHAPES:
                with self.subTest(dtype=dtype, sizes=sizes):
                    there = coo(sizes, dtype, sparse_dim=sparse_dim)
                    here = there.to("ocl")
                    self.assertEqual(here.device.type, "ocl")
                    self.assertEqual(here._nnz(), there._nnz())
                    self.assertEqual(here.is_coalesced(), there.is_coalesced())
                    for a, b in (
                        (here._indices(), there._indices()),
                        (here._values(), there._values()),
                        (here.cpu()._values(), there._values()),
                    ):
                        self.assertTrue(torch.equal(a.cpu(), b))

    def test_constructor(self) -> None:
        indices, values = torch.tensor([[0, 2, 0], [1, 0, 1]]), torch.tensor([1.0, 2.0, 3.0])
        a = torch.sparse_coo_tensor(indices.to("ocl"), values.to("ocl"), (3, 2))
        b = torch.sparse_coo_tensor(indices, values, (3, 2), device="ocl")
        c = torch.sparse_coo_tensor(indices, values, device="ocl")
        for t in (a, b, c):
            self.agree(t, torch.sparse_coo_tensor(indices, values, (3, 2)))
            self.assertFalse(t.is_coalesced())
            with self.assertRaisesRegex(RuntimeError, "uncoalesced"):
                t.indices()
        joined = a.coalesce()
        self.assertTrue(joined.is_coalesced())
        self.assertEqual(joined.indices().tolist(), [[0, 2], [1, 0]])
        self.assertEqual(joined.values().tolist(), [4.0, 2.0])
        empty = torch.sparse_coo_tensor(size=(2, 3), device="ocl")
        self.assertEqual((empty._nnz(), empty.shape), (0, (2, 3)))
        self.assertEqual(torch.zeros(2, 3, layout=torch.sparse_coo, device="ocl")._nnz(), 0)
        self.assertEqual(torch.empty_like(a).layout, torch.sparse_coo)

    def test_conversions(self) -> None:
        for dtype in ALL:
            for sizes, sparse_dim in SHAPES:
                with self.subTest(dtype=dtype, sizes=sizes):
                    t = coo(sizes, dtype, sparse_dim=sparse_dim)
                    self.both(lambda t: t.coalesce(), t)
                    self.agree(t.to("ocl").to_dense(), dense(t))
                    self.both(lambda t, n: t.to_sparse(n), dense(t), sparse_dim)
                    self.both(lambda t: t.clone().zero_(), t)

    def test_changes_of_form(self) -> None:
        t = coo((4, 5, 3), sparse_dim=2)
        self.both(lambda t: t.transpose(0, 1), t)
        self.both(lambda t: t.permute(1, 0, 2), t)
        self.both(lambda t: t.unsqueeze(1), t)
        self.both(lambda t: t.narrow_copy(0, 1, 2), t)
        self.both(lambda t: torch.cat([t, t], 0), t)
        self.both(lambda t: torch.cat([t, t], 2), t)
        self.both(lambda t: t.select(0, 1), t)
        self.both(lambda t: t.to(torch.float64), t)
        self.both(lambda t: t.clone().sparse_resize_((6, 7, 3), 2, 1), t)
        self.both(lambda t: t.clone().sparse_resize_and_clear_((2, 2), 2, 0), t)
        other = coo((2, 2, 3), entries=3, sparse_dim=2)
        self.both(lambda t, o: o.clone().resize_as_sparse_(t).zero_(), t, other)
        self.both(lambda t, o: torch.zeros_like(t).copy_(o), t, coo((4, 5, 3), sparse_dim=2))

    def test_copies_between_devices(self) -> None:
        t = coo((4, 5))
        here = torch.zeros(4, 5, layout=torch.sparse_coo, device="ocl").copy_(t)
        self.agree(here, t)
        there = torch.zeros(4, 5, layout=torch.sparse_coo).copy_(here)
        torch.testing.assert_close(there.to_dense(), t.to_dense())

    def test_text_and_files(self) -> None:
        t = coo((4, 5), entries=3).to("ocl")
        text = repr(t)
        for part in ("indices=tensor", "values=tensor", "size=(4, 5)", "nnz=3", "sparse_coo"):
            self.assertIn(part, text)
        file = io.BytesIO()
        torch.save(t, file)
        file.seek(0)
        self.agree(torch.load(file), t.cpu())
        file.seek(0)
        loaded = torch.load(file, map_location="cpu")
        torch.testing.assert_close(loaded.to_dense(), dense(t))

    def test_select_rows(self) -> None:
        for sizes, sparse_dim in SHAPES[:5]:
            t = coo(sizes, sparse_dim=sparse_dim)
            for dim in range(len(sizes)):
                index = torch.randint(0, sizes[dim], (6,))
                self.both(lambda t, i, d: t.index_select(d, i), t, index, dim)
        self.both(
            lambda t, i: t.index_select(0, i), coo((5, 7)), torch.tensor([], dtype=torch.int64)
        )

    def test_diagonals(self) -> None:
        for shape in ((3, 4), (5, 5), (6, 2)):
            for layout in (None, torch.sparse_csr, torch.sparse_csc):
                # The CPU's indices leave the matrix where diagonals are longer than its rows.
                values, offsets = torch.randn(3, min(5, shape[1])), torch.tensor([0, -1, 2])
                self.both(torch.sparse.spdiags, values, offsets, shape, layout)
        self.both(torch.sparse.spdiags, torch.randn(3), torch.tensor(1), (3, 3))
        for offsets in ([0], [0, 0], [0.0, 1.0]):
            self.same_error(torch.sparse.spdiags, torch.ones(2, 3), torch.tensor(offsets), (3, 3))


class Arithmetic(Case):
    def test_unary(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.complex64):
            for name in UNARY:
                t = coo((5, 7), dtype)
                t = torch.sparse_coo_tensor(t._indices(), t._values() * 0.3, t.shape)
                with self.subTest(name=name, dtype=dtype):
                    if not self.both_or_neither(getattr(torch, name), t):
                        continue
                    if name != "abs" or not dtype.is_complex:
                        self.both(lambda t: getattr(t.coalesce().clone(), f"{name}_")(), t)  # noqa: B023
        for name in ("isnan", "isinf", "isposinf", "isneginf", "signbit"):
            t = torch.sparse_coo_tensor([[0, 1, 2]], [float("nan"), -torch.inf, 1.0], (5,))
            self.both(getattr(torch, name), t)
        self.both(lambda t: torch.nan_to_num(t, 2.0), t)
        self.both(lambda t: t.pow(2), coo((5, 7)))
        self.both(lambda t: t.coalesce().any(), coo((5, 7), torch.bool))

    def test_add(self) -> None:
        for dtype in (torch.float32, torch.float64, *COMPLEX, *INTEGERS):  # those of the CPU
            for sizes, sparse_dim in SHAPES:
                with self.subTest(dtype=dtype, sizes=sizes):
                    a, b = (coo(sizes, dtype, sparse_dim=sparse_dim) for _ in range(2))
                    self.both(lambda a, b: a + b, a, b)
                    self.both(lambda a, b: a.coalesce() + b.coalesce(), a, b)
                    self.both(lambda a, b: torch.add(a, b, alpha=2), a, b)
                    self.both(lambda a, b: a.clone().add_(b), a, b)
                    d = numbers(sizes, dtype)
                    self.both(lambda d, b: d + b, d, b)
                    self.both(lambda d, b: torch.add(d, b, alpha=3), d, b)
                    self.both(lambda d, b: d.clone().add_(b), d, b)
                    if dtype is not torch.uint8:
                        self.both(lambda a, b: a - b, a, b)
        a, none = coo((5, 7)), coo((5, 7), entries=0)
        self.both(lambda a, n: (a + n, n + a, n + n), a, none)
        self.both(lambda d, b: d.t().add_(b), numbers((7, 5), torch.float32), a)
        self.both(lambda a, b: a + b, a, coo((5, 7), torch.float64))

    def test_multiply(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.complex64, torch.int64):
            for sizes, sparse_dim in SHAPES:
                with self.subTest(dtype=dtype, sizes=sizes):
                    a, b = (coo(sizes, dtype, 20, sparse_dim) for _ in range(2))
                    self.both(lambda a, b: a * b, a, b)
                    self.both(lambda a: a * 2, a)
                    self.both(lambda a: a / 2, a)
                    self.both(lambda a, d: (a * d, d * a), a, numbers(sizes, dtype))
        a = coo((5, 7))
        self.both(lambda a: a.clone().mul_(3), a)
        self.both(lambda a: a.div(2, rounding_mode="floor"), a)
        self.both(lambda a, d: a * d, a, numbers((7,), torch.float32))

    def test_sums(self) -> None:
        for sizes, sparse_dim in SHAPES:
            t = coo(sizes, sparse_dim=sparse_dim)
            self.both(lambda t: torch.sparse.sum(t), t)
            self.both(lambda t: t.sum(), t)
            for dim in range(len(sizes)):
                self.both(lambda t, d: torch.sparse.sum(t, d), t, dim)
            self.both(lambda t: torch.sparse.sum(t, dim=(0,), dtype=torch.float64), t)
        self.both(lambda t: t.norm(), coo((5, 7)))
        self.both(lambda t: torch.sparse.sum(t, (0, 1)), coo((5, 7, 3), sparse_dim=2))

    def test_mask(self) -> None:
        for sizes, sparse_dim in SHAPES:
            mask = coo(sizes, sparse_dim=sparse_dim)
            self.both(lambda d, m: d.sparse_mask(m), numbers(sizes, torch.float32), mask)
            other = coo(sizes, sparse_dim=sparse_dim)
            self.both(lambda a, m: a.sparse_mask(m), other.coalesce(), mask.coalesce())

    def test_softmax(self) -> None:
        for dtype in (torch.float32, torch.float64):
            for sizes, sparse_dim in (((5, 7), 2), ((4, 3, 5), 3), ((5, 3, 2), 1), ((6,), 1)):
                for dim in range(len(sizes)):
                    t = coo(sizes, dtype, 14, sparse_dim)
                    with self.subTest(dtype=dtype, sizes=sizes, dim=dim):
                        self.both(torch.sparse.softmax, t, dim)
                        self.both(torch.sparse.log_softmax, t, dim)


class Products(Case):
    def test_dense(self) -> None:
        for dtype in (*FLOATS, *COMPLEX, *INTEGERS):
            for columns in (0, 1, 5, 16, 33, 70, 133):
                with self.subTest(dtype=dtype, columns=columns):
                    a, b = coo((9, 11), dtype, 30), numbers((11, columns), dtype)
                    self.both(torch.mm, a, b, terms=64)
                    self.both(lambda a, b: a.coalesce() @ b, a, b, terms=64)
        a, b, c = coo((9, 11)), numbers((7, 11), torch.float32).t(), torch.randn(9, 7)
        self.both(torch.sparse.mm, a, b)
        self.both(lambda a, b, c: torch.addmm(c, a, b, beta=2, alpha=-1), a, b, c)
        self.both(lambda a, b, c: torch.sparse.addmm(c, a, b, beta=0.5, alpha=3), a, b, c)
        self.both(lambda a, b, c: c.clone().addmm_(a, b), a, b, c)
        nan = torch.full((9, 7), torch.nan)
        self.both(lambda a, b, c: torch.addmm(c, a, b, beta=0), a, b, nan)
        self.both(torch.mv, a, torch.randn(11))
        self.both(lambda a, b: a @ b, a, torch.randn(11))
        self.both(torch.hspmm, a, b)
        self.both(torch.smm, a, b)
        self.both(lambda a, b, c: torch.sspaddmm(c, a, b, beta=2, alpha=3), a, b, coo((9, 7)))
        for entries in (0, 1, 40):
            self.both(torch.bmm, coo((3, 4, 5), entries=entries), torch.randn(3, 5, 6))

    def test_sparse(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.complex64):
            for entries in (0, 1, 40):
                a, b = coo((9, 11), dtype, entries), coo((11, 8), dtype)
                self.both(torch.sparse.mm, a, b)

    def test_wrong_indices(self) -> None:
        """An index that no check has seen is reported, and nothing outside the tensors is read."""
        wrong = (([0, 1], [2, 99]), ([0, 1], [-5, 2]), ([0, 77], [2, 2]), ([-3, 0], [1, 1]))
        for rows, columns in wrong:
            for dtype in (torch.float32, torch.complex64):
                for width in (3, 40):
                    bad = torch.sparse_coo_tensor(
                        torch.tensor([rows, columns], device="ocl"),
                        torch.ones(2, device="ocl", dtype=dtype),
                        (3, 4),
                        is_coalesced=True,
                        check_invariants=False,
                    )
                    with self.assertRaisesRegex(IndexError, "_ocl_csr_mm.out: index"):
                        (bad @ torch.ones(4, width, device="ocl", dtype=dtype)).cpu()


class Errors(Case):
    def test_invariants(self) -> None:
        def make(indices, values, size):
            return torch.sparse_coo_tensor(indices, values, size, check_invariants=True)

        one = torch.ones(1)
        self.same_error(make, torch.tensor([[5]]), one, (3,))
        self.same_error(make, torch.tensor([[-1]]), one, (3,))
        self.same_error(make, torch.tensor([[0, 1]]), one, (3,))
        self.same_error(make, torch.tensor([[0], [0]]), one, (3,))
        with torch.sparse.check_sparse_tensor_invariants():
            self.same_error(torch.sparse_coo_tensor, torch.tensor([[5]]), one, (3,))
        with self.assertRaisesRegex(RuntimeError, "must match backend of values"):
            torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
                1, 0, [3], torch.zeros(1, 1, dtype=torch.int64), one.to("ocl"),
                dtype=one.dtype, layout=torch.sparse_coo, device="ocl",
            )  # fmt: skip

    def test_arguments(self) -> None:
        a = coo((3, 3))
        self.same_error(torch.mm, a, torch.randn(4, 3))
        self.same_error(torch.bmm, coo((2, 3, 3)), torch.randn(3, 3, 3))
        self.same_error(torch.sparse.mm, a, coo((4, 3)))
        self.same_error(torch.add, a, coo((3, 4)))
        self.same_error(torch.add, torch.randn(3, 4), a)
        self.same_error(torch.add, a, torch.randn(3, 3))
        self.same_error(lambda a, m: a.sparse_mask(m), torch.randn(3, 4), a)
        self.same_error(lambda a, i: a.index_select(0, i), a, torch.tensor([3]), words=False)
        self.same_error(torch.mm, a, torch.randn(3, 3, dtype=torch.float64), words=False)
        for f in (torch.mm, torch.add, torch.mul):
            with self.assertRaisesRegex(RuntimeError, "device"):
                f(
                    a.to("ocl"),
                    torch.randn(3, 3).to_sparse() if f is torch.add else torch.randn(3, 3),
                )


class Gradients(Case):
    def check(self, f, *inputs: torch.Tensor) -> None:
        moved = [t.to("ocl").requires_grad_() for t in inputs]
        self.assertTrue(torch.autograd.gradcheck(f, moved, masked=True))

    def test_gradcheck(self) -> None:
        a = coo((4, 5), torch.float64, 9).coalesce()
        b = numbers((5, 3), torch.float64)
        self.check(torch.sparse.mm, a, b)
        self.check(lambda a: a.to_dense(), a)
        self.check(lambda a: torch.sparse.sum(a, 0).to_dense(), a)
        self.check(lambda a: torch.sparse.sum(a), a)
        self.check(lambda d: d.to_sparse().to_dense(), b)
        h = coo((4, 3, 2), torch.float64, 5, 1).coalesce()
        self.check(lambda h: torch.sparse.sum(h, (0, 2)), h)

    def test_against_cpu(self) -> None:
        def gradients(f, *inputs):
            inputs = [t.detach().clone().requires_grad_() for t in inputs]
            f(*inputs).sum().backward()
            return [t.grad for t in inputs]

        a, b = coo((4, 5), entries=9).coalesce(), torch.randn(5, 3)
        weight = torch.randn(4, 5)
        self.both(lambda *t: gradients(torch.sparse.mm, *t), a, b)
        self.both(lambda *t: gradients(lambda a, w: a.to_dense() * w, *t), a, weight)
        for f in (torch.sparse.softmax, torch.sparse.log_softmax):
            for dim in (0, 1):
                self.both(
                    lambda *t: gradients(lambda a, w: f(a, dim).to_dense() * w, *t),
                    a,
                    weight,  # noqa: B023
                )


class Models(Case):
    def test_graph_convolution(self) -> None:
        """Two layers over a normalised adjacency: the same losses as on the CPU."""
        n = 60
        edges = coo((n, n), entries=400).coalesce()
        adjacency = torch.sparse_coo_tensor(edges.indices(), torch.ones(edges._nnz()) / 8, (n, n))
        features, labels = torch.randn(n, 12), torch.randint(0, 4, (n,))
        first, second = torch.randn(12, 16) * 0.3, torch.randn(16, 4) * 0.3

        def losses(device: str) -> list[float]:
            graph = adjacency.to(device).coalesce()
            weights = [w.to(device, copy=True).requires_grad_() for w in (first, second)]
            optimizer = torch.optim.Adam(weights, 0.02)
            found = []
            for _ in range(20):
                hidden = torch.sparse.mm(graph, features.to(device) @ weights[0]).relu()
                scores = torch.sparse.mm(graph, hidden @ weights[1])
                loss = torch.nn.functional.cross_entropy(scores, labels.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
            return found

        here, there = losses("ocl"), losses("cpu")
        self.assertLess(there[-1], 0.9 * there[0])
        # Rounding in float32, amplified by 20 steps.
        torch.testing.assert_close(torch.tensor(here), torch.tensor(there), rtol=1e-4, atol=1e-5)

    def test_sparse_embedding(self) -> None:
        words = torch.randint(0, 30, (5, 8))
        start = torch.randn(30, 6)
        makers = (
            lambda p: torch.optim.SparseAdam(p, 0.05),
            lambda p: torch.optim.SGD(p, 0.1),
            lambda p: torch.optim.Adagrad(p, 0.1),
        )

        def train(device: str, make, bag: bool) -> torch.Tensor:
            kind = torch.nn.EmbeddingBag if bag else torch.nn.Embedding
            layer = kind(30, 6, sparse=True, _weight=start.clone()).to(device)
            optimizer = make(layer.parameters())
            for _ in range(5):
                optimizer.zero_grad()
                layer(words.to(device)).square().sum().backward()
                self.assertTrue(layer.weight.grad.is_sparse)
                optimizer.step()
            return layer.weight.detach().cpu()

        for make in makers:
            for bag in (False, True):
                # Five steps of float32.
                torch.testing.assert_close(
                    train("ocl", make, bag), train("cpu", make, bag), rtol=1e-4, atol=1e-5
                )


if __name__ == "__main__":
    unittest.main()
