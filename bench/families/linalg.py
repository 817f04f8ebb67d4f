"""Dense linear algebra, many small matrices and single large ones; sparse matrices times dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rows import Row, Scale, Tensor

EPS = 2.0**-23
# cuSOLVER's float32 eigenvalues of a random 512 x 512 matrix are off by 2.0e-4 of the largest,
# singular values of 1024 x 1024 by 1.5e-4; ours by 2.3e-7 and 1.6e-5 (H100, against float64).
PEER_ON_GPU = 4e-4


def factored(
    name: str,
    op: str,
    batch: int,
    n: int,
    rest: list[Any],
    outs: Callable[[tuple[int, ...]], list[Tensor]],
    flops: float,
    **more: Any,
) -> Row:
    """`flops` is the factor of n^3. Backward stable algorithms lose some sqrt(n) eps, of which the
    well-conditioned matrices here make no more than a factor of 16."""
    lead = (batch,) if batch else ()
    a = Tensor((*lead, n, n), draw=more.pop("draw", "normal"))
    return Row(
        "linalg",
        f"{name} {f'{batch}x' if batch else ''}{n}x{n}",
        op,
        [a, *rest],
        outs(lead),
        flops=flops * max(batch, 1) * n**3,
        tolerance=more.pop("tolerance", 16 * n**0.5 * EPS),
        **more,
    )


def dense(batch: int, n: int, gpu: bool) -> list[Row]:
    def square(lead: tuple[int, ...], dtype: str = "float32") -> Tensor:
        return Tensor((*lead, n, n), dtype)

    def vector(lead: tuple[int, ...], dtype: str = "float32") -> Tensor:
        return Tensor((*lead, n), dtype)

    def info(lead: tuple[int, ...]) -> Tensor:
        return Tensor(lead, "int32")

    where = {"batch": batch, "n": n}
    spectrum = {"tolerance": PEER_ON_GPU} if gpu else {}
    return [
        factored(
            "eigh", "_linalg_eigh.eigenvalues", rest=["L", True], flops=9,
            outs=lambda b: [vector(b), square(b)], **where, **spectrum,
        ),
        # Singular vectors have any sign.
        factored(
            "svd", "_linalg_svd.U", rest=[False, True, None], flops=22, check=(1,),
            outs=lambda b: [square(b), vector(b), square(b)], **where, **spectrum,
        ),
        # Eigenvalues come in any order.
        factored(
            "eig", "linalg_eig.out", rest=[], flops=25, check=(),
            outs=lambda b: [vector(b, "complex64"), square(b, "complex64")], **where,
        ),
        factored(
            "cholesky", "linalg_cholesky_ex.L", rest=[False, False], flops=1 / 3, draw="definite",
            outs=lambda b: [square(b), info(b)], **where,
        ),
        factored(
            "lu", "linalg_lu_factor_ex.out", rest=[True, False], flops=2 / 3, draw="definite",
            outs=lambda b: [square(b), vector(b, "int32"), info(b)], **where,
        ),
        factored(
            "solve", "_linalg_solve_ex.result", flops=8 / 3, draw="definite", check=(0,),
            rest=[square((batch,) if batch else ()), True, False],
            outs=lambda b: [square(b), square(b), vector(b, "int32"), info(b)], **where,
        ),
        factored(
            "inverse", "linalg_inv_ex.inverse", rest=[False], flops=2, draw="definite",
            outs=lambda b: [square(b), info(b)], **where,
        ),
        factored(
            "qr", "linalg_qr.out", rest=["reduced"], flops=4 / 3, draw="definite", check=(1,),
            outs=lambda b: [square(b), square(b)], **where,
        ),
    ]  # fmt: skip


def sparse(n: int, entries: int, columns: int) -> Row:
    """Compressed rows of random lengths; columns in any order."""

    def peer(torch: Any, inputs: list[Any]) -> Callable[[], Any]:
        values, start, index, mat = inputs
        a = torch.sparse_csr_tensor(start, index, values, (n, n), check_invariants=False)
        return lambda: a @ mat

    values, mat = Tensor((entries,)), Tensor((n, columns))
    start = Tensor((n + 1,), "int64", f"offsets {entries}")
    index = Tensor((entries,), "int64", f"index {n}")
    return Row(
        "linalg",
        f"csr {n}x{n} of {entries} times {columns} columns",
        "_ocl_csr_mm.out",
        [values, start, index, mat, "sum"],
        [Tensor((n, columns))],
        flops=2.0 * entries * columns,
        peer=peer,
    )


def rows(scale: Scale) -> list[Row]:
    sizes = [(1024, 8), (0, 64), (0, 512)]
    if scale.gpu:
        sizes += [(1024, 32), (0, 1024)]
    if scale.full:
        sizes.append((0, 2048))
    found = [row for batch, n in sizes for row in dense(batch, n, scale.gpu)]
    many = scale.pick(1_000_000, 10_000_000)
    return [*found, *(sparse(100_000, many, columns) for columns in (1, 8, 64))]
