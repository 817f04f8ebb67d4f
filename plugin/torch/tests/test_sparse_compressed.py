"""Compressed sparse tensors (CSR, CSC, BSR, BSC) on ocl against PyTorch's CPU."""

import io
import unittest

import torch
from sparse_case import COMPLEX, FLOATS, INTEGERS, Case, coo, csr, dense, numbers

ALL = (*FLOATS, *COMPLEX, *INTEGERS, torch.bool)
LAYOUTS = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
REDUCTIONS = ("sum", "mean", "amax", "amin", "max", "min")
UNARY = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac log1p neg rad2deg relu "
    "round sgn sign sin sinh sqrt tan tanh trunc isnan isinf signbit angle"
).split()


def compressed(t: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    blocks = (2, 3) if layout in LAYOUTS[2:] else None
    return t.to_sparse(layout=layout, blocksize=blocks)


def sparse_matrix(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Dense on the CPU, most elements zero."""
    return numbers((rows, columns), dtype) * (torch.rand(rows, columns) < 0.3).to(dtype)


class Forms(Case):
    def test_move(self) -> None:
        for dtype in ALL:
            for layout in LAYOUTS:
                with self.subTest(dtype=dtype, layout=layout):
                    there = compressed(sparse_matrix(6, 9, dtype), layout)
                    here = there.to("ocl")
                    self.agree(here, there)
                    self.assertTrue(torch.equal(here.values().cpu(), there.values()))
                    self.assertTrue(torch.equal(here.cpu().values(), there.values()))
                    self.agree(here.clone(), there)
                    self.agree(torch.empty_like(here).copy_(there), there)

    def test_parts(self) -> None:
        for index in (torch.int32, torch.int64):
            t = csr(5, 7, index=index)
            here = torch.sparse_csr_tensor(
                t.crow_indices().to("ocl"), t.col_indices().to("ocl"), t.values().to("ocl"), t.shape
            )
            for name in ("crow_indices", "col_indices", "values"):
                self.both(lambda t: getattr(t, name)(), t)  # noqa: B023
            self.agree(here, t)
            self.assertEqual(here._nnz(), t._nnz())
        self.assertEqual(torch.zeros(2, 3, layout=torch.sparse_csr, device="ocl")._nnz(), 0)

    def test_conversions(self) -> None:
        for dtype in (torch.float32, torch.complex64, torch.int64):
            d = sparse_matrix(6, 9, dtype)
            for layout in LAYOUTS:
                with self.subTest(dtype=dtype, layout=layout):
                    self.both(compressed, d, layout)
                    t = compressed(d, layout)
                    self.both(lambda t: t.to_dense(), t)
                    self.both(lambda t: t.to_sparse(), t)
            for other in (torch.sparse_csr, torch.sparse_csc):
                for layout in (torch.sparse_csr, torch.sparse_csc):
                    self.both(lambda t, o: t.to_sparse(layout=o), compressed(d, layout), other)
            for first, second in ((0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (3, 2)):
                t = compressed(d, LAYOUTS[first])
                self.both(compressed, t, LAYOUTS[second])
            self.both(lambda t: t.to_sparse_csr(), coo((6, 9), dtype))
            self.both(lambda t: t.to_sparse_csc(), coo((6, 9), dtype))
        self.both(lambda t: t.t().to_dense(), csr(5, 7))
        self.both(lambda t: t.to_sparse_csr(), torch.zeros(3, 4))
        self.both(lambda t: t.to_sparse_csr(), torch.zeros(0, 4))
        batch = torch.randn(2, 1, 3, 4).expand(2, 3, 3, 4).contiguous()
        self.both(lambda t: t.to_sparse_csr(), batch)
        self.both(lambda t: t.to_dense(), batch.to_sparse_csr())
        self.both(lambda t: t.to_sparse(), batch.to_sparse_csr())
        self.both(lambda t: t.to_sparse_csc(), batch.to_sparse_csr())
        self.both(lambda t: t.to_sparse_csr(), batch.to_sparse_csc())
        hybrid = torch.randn(4, 6, 2) * (torch.rand(4, 6, 1) < 0.4)
        self.both(lambda t: t.to_sparse_csc(), hybrid.to_sparse_csr(dense_dim=1))
        self.both(lambda t: t.to_sparse_csr(dense_dim=1), hybrid)

    def test_text_and_files(self) -> None:
        t = csr(4, 5).to("ocl")
        for part in ("crow_indices=tensor", "col_indices=tensor", "size=(4, 5)", "sparse_csr"):
            self.assertIn(part, repr(t))
        file = io.BytesIO()
        torch.save(t, file)
        file.seek(0)
        self.agree(torch.load(file), t.cpu())

    def test_select(self) -> None:
        t = csr(5, 7)
        self.both(lambda t: t[2], t)
        self.both(lambda t: t.select(1, 3), t)


class Arithmetic(Case):
    def test_unary(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.complex64):
            t = csr(5, 7, dtype) * 0.3
            for name in UNARY:
                with self.subTest(name=name, dtype=dtype):
                    self.both_or_neither(getattr(torch, name), t)
        self.both(lambda t: t.clone().zero_(), t)
        self.both(lambda t: t.clone().fill_(2), t)
        self.both(lambda t: (t * 2, t.clone().mul_(3)), t)

    def test_add_and_multiply(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.complex64):
            a, b, d = csr(5, 7, dtype), csr(5, 7, dtype), numbers((5, 7), dtype)
            self.both(lambda a, b: a + b, a, b)
            self.both(lambda a, b: torch.add(a, b, alpha=-2), a, b)
            self.both(lambda a, b: a.clone().add_(b), a, b)
            self.both(lambda a, d: (a + d, d + a), a, d)
            self.both(lambda a, b: a * b, a, b)
            self.both(lambda a, d: a * d, a, d)

    def test_sums(self) -> None:
        for t in (csr(5, 7), csr(5, 7, torch.int64), torch.zeros(3, 4).to_sparse_csr()):
            self.both(lambda t: t.sum(), t)
            # The CPU's value of no entries is not a tensor of none.
            for dims in ([0], [1], [0, 1]) if t._nnz() else ([0], [1]):
                self.both(lambda t, d: torch._sparse_csr_sum(t, d, True), t, dims)
                self.both(lambda t, d: torch._sparse_csr_prod(t, d, True), t, dims)


class Products(Case):
    def test_dense(self) -> None:
        for dtype in (torch.float32, torch.float64, *COMPLEX):
            for index in (torch.int32, torch.int64):
                for columns in (1, 4, 5, 16, 33, 70):
                    with self.subTest(dtype=dtype, index=index, columns=columns):
                        a, b = csr(9, 11, dtype, index), numbers((11, columns), dtype)
                        c = numbers((9, columns), dtype)
                        self.both(torch.mm, a, b, terms=32)
                        self.both(torch.sparse.mm, a, b, terms=32)
                        self.both(
                            lambda a, b, c: torch.addmm(c, a, b, alpha=2, beta=3), a, b, c, terms=64
                        )
                a = csr(9, 11, dtype, index)
                self.both(torch.mv, a, numbers((11,), dtype), terms=32)
                self.both(
                    lambda a, b, c: torch.addmv(c, a, b, beta=2),
                    a, numbers((11,), dtype), numbers((9,), dtype), terms=32,
                )  # fmt: skip

    def test_types_of_ours(self) -> None:
        """The CPU's CSR products have no 16-bit numbers and integers: COO is the judge."""
        for dtype in (torch.float16, torch.bfloat16, *INTEGERS):
            a, b = csr(9, 11, dtype), numbers((11, 20), dtype)
            got = a.to("ocl") @ b.to("ocl")
            self.agree(got, (dense(a).double() @ b.double()).to(dtype), terms=32)

    def test_layouts(self) -> None:
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                a, b = sparse_matrix(6, 9), torch.randn(9, 12)
                got = compressed(a, layout).to("ocl") @ b.to("ocl")
                self.agree(got, a @ b, terms=32)
                got = b[:, :6].to("ocl") @ compressed(a, layout).to("ocl")
                self.agree(got, b[:, :6] @ a, terms=32)
        self.both(torch.mm, csr(5, 7), csr(7, 6))
        self.both(torch.mm, torch.randn(5, 7), csr(7, 6))

    def test_sampled(self) -> None:
        for dtype in (torch.float32, torch.float64, *COMPLEX):
            t = csr(6, 7, dtype)
            a, b = numbers((6, 5), dtype), numbers((7, 5), dtype).t()
            self.both(torch.sparse.sampled_addmm, t, a, b, terms=32)
            self.both(
                lambda *t: torch.sparse.sampled_addmm(*t, alpha=2, beta=0.5), t, a, b, terms=32
            )
            self.both(
                lambda *t: torch.sparse.sampled_addmm(*t, out=t[0].clone()), t, a, b, terms=32
            )
        batch = torch.randn(2, 1, 3, 4).expand(2, 3, 3, 4).contiguous().to_sparse_csr()
        a, b = torch.randn(2, 3, 3, 5), torch.randn(2, 3, 5, 4)
        got = torch.sparse.sampled_addmm(*(t.to("ocl") for t in (batch, a, b)))
        self.agree(got.to_dense(), (batch.to_dense() + a @ b) * (batch.to_dense() != 0), terms=32)

    def test_reduced(self) -> None:
        for dtype in (torch.float32, torch.float64):
            for reduce in REDUCTIONS:
                for columns in (1, 7, 40):
                    with self.subTest(dtype=dtype, reduce=reduce, columns=columns):
                        a, b = csr(9, 11, dtype), numbers((11, columns), dtype)
                        self.both(torch.sparse.mm, a, b, reduce, terms=32)
        a, b = csr(9, 11), torch.randn(11, 20)
        b[3] = torch.nan
        for reduce in REDUCTIONS:
            self.both(torch.sparse.mm, a, b, reduce)


class Errors(Case):
    def test_invariants(self) -> None:
        def make(start, columns, size=(2, 2)):
            values = torch.ones(len(columns), device=columns.device)
            return torch.sparse_csr_tensor(start, columns, values, size, check_invariants=True)

        def columns_first(start, rows):
            values = torch.ones(len(rows), device=rows.device)
            return torch.sparse_csc_tensor(start, rows, values, (2, 2), check_invariants=True)

        for start, columns in (
            ([1, 1, 2], [0, 1]),
            ([0, 1, 3], [0, 1]),
            ([0, 3, 3], [0, 1, 1]),
            ([0, 2, 2], [1, 1]),
            ([0, 2, 2], [1, 0]),
            ([0, 2, 2], [0, 5]),
            ([0, 2, 2], [-1, 1]),
            ([0, 2], [0, 1]),
        ):
            for f in (make, columns_first):
                self.same_error(f, torch.tensor(start), torch.tensor(columns))
        # The CPU reads an index behind the last one here: which invariant it names is open.
        self.same_error(make, torch.tensor([0, 2, 1]), torch.tensor([0]), words=False)
        make(torch.tensor([0, 1, 2], device="ocl"), torch.tensor([1, 0], device="ocl"))
        both = torch.tensor([[0, 1, 2], [0, 2, 2]])
        columns = torch.tensor([[1, 0], [0, 1]])
        torch._validate_compressed_sparse_indices(True, both.to("ocl"), columns.to("ocl"), 2, 2, 2)

    def test_arguments(self) -> None:
        t = torch.eye(3).to_sparse_csr()
        self.same_error(torch.mm, t, torch.randn(4, 3))
        self.same_error(torch.mm, t, torch.randn(3, 3, dtype=torch.float64))
        self.same_error(torch.sparse.sampled_addmm, t, torch.randn(3, 3), torch.randn(4, 3))
        self.same_error(torch.sparse.sampled_addmm, t, torch.randn(2, 3), torch.randn(3, 3))
        self.same_error(torch.sparse.mm, t, torch.randn(4, 3), "sum")
        self.same_error(torch.sparse.mm, t, torch.randn(3, 3), "median", words=False)
        self.same_error(lambda t: torch._sparse_csr_sum(t, [0], False), t)
        with self.assertRaisesRegex(RuntimeError, "device"):
            torch.mm(t.to("ocl"), torch.randn(3, 3))


class Gradients(Case):
    def gradients(self, f, *inputs: torch.Tensor) -> list[torch.Tensor]:
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        out = f(*leaves)
        slopes = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
        out.backward(slopes.to(out.device))
        return [t.grad for t in leaves]

    def test_product(self) -> None:
        a, b = csr(9, 11, torch.float64), numbers((11, 6), torch.float64)
        for reduce in REDUCTIONS:
            with self.subTest(reduce=reduce):
                self.both(
                    lambda *t: self.gradients(lambda a, b: torch.sparse.mm(a, b, reduce), *t), a, b
                )  # noqa: B023
        self.both(lambda *t: self.gradients(torch.sparse.mm, *t), a, b)

    def test_sampled(self) -> None:
        t, a, b = (
            csr(6, 7, torch.float64), numbers((6, 5), torch.float64), numbers((5, 7), torch.float64)
        )  # fmt: skip
        moved = [x.to("ocl").requires_grad_() for x in (t, a, b)]

        def f(*inputs: torch.Tensor) -> torch.Tensor:
            return torch.sparse.sampled_addmm(*inputs, alpha=2).to_dense(masked_grad=True)

        self.assertTrue(torch.autograd.gradcheck(f, moved, masked=True))

    def test_dense(self) -> None:
        t = csr(6, 7, torch.float64).to("ocl").requires_grad_()
        self.assertTrue(
            torch.autograd.gradcheck(lambda t: t.to_dense(masked_grad=True), (t,), masked=True)
        )


if __name__ == "__main__":
    unittest.main()
