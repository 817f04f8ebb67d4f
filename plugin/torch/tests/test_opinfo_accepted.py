"""The sweep's judges (opinfo/accepted.py) take what ATen leaves open, and nothing else."""

import pathlib
import sys
import types
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "opinfo"))
import accepted  # noqa: E402


def judged(name, source, args, got, want, **kwargs):
    op = types.SimpleNamespace(name=name)
    sample = types.SimpleNamespace(input=source, args=args, kwargs=kwargs)
    return accepted.accepts(op, sample, got, want)


def index(*values):
    return torch.tensor(values, dtype=torch.int64)


class Judges(unittest.TestCase):
    source = torch.tensor([3, 1, 3, 2])
    sorted = torch.tensor([1, 2, 3, 3])

    def test_sort_takes_equal_elements_in_any_order(self) -> None:
        want = [self.sorted, index(1, 3, 0, 2)]
        self.assertTrue(judged("sort", self.source, (), [self.sorted, index(1, 3, 2, 0)], want))
        self.assertTrue(judged("argsort", self.source, (), [index(1, 3, 2, 0)], want[1:]))

    def test_sort_refuses(self) -> None:
        want = [self.sorted, index(1, 3, 0, 2)]
        for wrong in (index(1, 3, 2, 2), index(3, 1, 0, 2), index(1, 3, 0, 4), index(1, 3, 0, -2)):
            self.assertFalse(judged("sort", self.source, (), [self.sorted, wrong], want))
            self.assertFalse(judged("argsort", self.source, (), [wrong], want[1:]))
        swapped = [self.sorted, index(1, 3, 2, 0)]
        self.assertFalse(judged("sort", self.source, (), swapped, want, stable=True))
        self.assertFalse(
            judged("sort", self.source, (), [self.sorted.flip(0), want[1].flip(0)], want)
        )

    def test_topk(self) -> None:
        want = [torch.tensor([3, 3]), index(0, 2)]
        self.assertTrue(judged("topk", self.source, (2,), [want[0], index(2, 0)], want))
        self.assertFalse(judged("topk", self.source, (2,), [want[0], index(2, 2)], want))
        self.assertFalse(
            judged("topk", self.source, (2,), [torch.tensor([3, 2]), index(0, 3)], want)
        )

    def test_singular_vectors(self) -> None:
        matrix = torch.tensor([[2.0, 1], [0, 1], [1, 1]])
        want = list(torch.linalg.svd(matrix, full_matrices=False))
        signs = torch.tensor([-1.0, 1])
        u, s, vh = want
        turned = [u * signs, s, signs[:, None] * vh]
        for name, got in (("linalg.svd", turned), ("svd", [*turned[:2], turned[2].mT])):
            others = want if name == "linalg.svd" else [u, s, vh.mT]
            self.assertTrue(judged(name, matrix, (), got, others))
            for wrong in (
                [u * signs, s, others[2]],
                [got[0], s * (1 + 1e-4), got[2]],
                [got[0] * 1.001, s / 1.001, got[2]],
                [got[0], s.flip(0), got[2]],
            ):
                self.assertFalse(judged(name, matrix, (), wrong, others))

    def test_general_eigenvectors(self) -> None:
        matrix = torch.tensor([[2.0, 1, 0], [-1, 2, 1], [0, 0, 5]])
        values, vectors = torch.linalg.eig(matrix)
        turned = vectors.flip(1) * torch.tensor([1j, -1, 0.6 + 0.8j])
        got, want = [values.flip(0), turned], [values, vectors]
        self.assertTrue(judged("linalg.eig", matrix, (), got, want))
        self.assertTrue(judged("linalg.eigvals", matrix, (), got[:1], want[:1]))
        for wrong in (
            [values, turned],
            [values.flip(0), turned * 1.001],
            [values.flip(0) * (1 + 1e-3), turned],
            [values.flip(0), turned.roll(1, 0)],
        ):
            self.assertFalse(judged("linalg.eig", matrix, (), wrong, want))
        self.assertFalse(judged("linalg.eigvals", matrix, (), [values + 1e-3], want[:1]))

    def test_one_of_equals(self) -> None:
        want = [torch.tensor(3), torch.tensor(0)]
        for name, args in (("kthvalue", (3,)), ("mode", ())):
            self.assertTrue(judged(name, self.source, args, [want[0], torch.tensor(2)], want))
            self.assertFalse(judged(name, self.source, args, [want[0], torch.tensor(1)], want))
            self.assertFalse(
                judged(name, self.source, args, [torch.tensor(1), torch.tensor(1)], want)
            )

    def test_linspace_of_integers(self) -> None:
        exact = torch.tensor(
            [int(0 + i * 10 / 8) if i < 4 else int(10 - (8 - i) * 10 / 8) for i in range(9)]
        )
        off = exact.clone()
        off[3] -= 1
        self.assertTrue(judged("linspace", 0, (10, 9), [exact], [off]))
        self.assertFalse(judged("linspace", 0, (10, 9), [off], [exact]))

    def test_gradient_bounds(self) -> None:
        x = torch.tensor([0.5, 0.999])
        exact = 1 / (1 - x.double() ** 2)
        op = types.SimpleNamespace(name="atanh")
        sample = types.SimpleNamespace(input=x, args=(), kwargs={})
        near = (exact * (1 + torch.tensor([1e-6, 5e-5]))).float()
        self.assertTrue(accepted.accepts_gradient(op, sample, [near], [exact]))
        far = (exact * (1 + torch.tensor([1e-3, 0]))).float()
        self.assertFalse(accepted.accepts_gradient(op, sample, [far], [exact]))

    def test_other_operators_have_no_freedom(self) -> None:
        self.assertFalse(judged("add", self.source, (1,), [self.source], [self.source + 1]))


if __name__ == "__main__":
    unittest.main()
