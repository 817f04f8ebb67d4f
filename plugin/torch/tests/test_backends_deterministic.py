"""Switches of torch.backends.ocl, each by what it does: the same bits in every run."""

import unittest

import torch
from backends_case import Case, ocl, run_python


class Deterministic(Case):
    ELEMENTS = """
import torch, torch_ocl
ocl = torch.backends.ocl
n = 20000
index = torch.arange(n) ** 2 % 7
wanted = torch.zeros(7)
values = torch.arange(n) + 0.5
for i, v in zip(index.tolist(), values.tolist()): wanted[i] = v
def put():
    x = torch.zeros(7, device="ocl")
    x[index.to("ocl")] = values.to("ocl")
    return x.cpu()
put()
assert ocl.last_choices()["index_put"] == "index_put.unordered"
with ocl.flags(deterministic=True):
    for _ in range(3): assert torch.equal(put(), wanted)
    assert ocl.last_choices()["index_put"] == "index_put.ordered"
torch.use_deterministic_algorithms(True)
put()
assert ocl.last_choices()["index_put"] == "index_put.ordered"
print("right")
"""

    def test_gpus_put_in_order(self) -> None:
        outcome = run_python(self.ELEMENTS, OCLTENSOR_KERNEL_STYLE="gpu")
        self.assertIn("right", outcome.stdout, outcome.stderr)

    def test_the_same_bits_in_every_run(self) -> None:
        index = torch.randint(50, (20000,), device="ocl")
        source = torch.randn(20000, device="ocl")
        image = torch.randn(1, 2, 9, 9, device="ocl", requires_grad=True)
        grid = (torch.rand(1, 400, 3, 2, device="ocl") * 2 - 1).requires_grad_()
        zeros = torch.zeros(50, device="ocl")

        def grid_gradients():
            out = torch.nn.functional.grid_sample(image, grid, align_corners=False)
            return torch.autograd.grad(out.square().sum(), (image, grid))

        def embedding_gradient():
            table = torch.ones(50, 4, device="ocl", requires_grad=True)
            return torch.autograd.grad(
                torch.nn.functional.embedding(index, table)[:, 0] @ source, table
            )

        def pooled():
            out = torch.nn.functional.max_pool2d(image, 3, stride=1)
            return torch.autograd.grad(out.sum(), image)

        bodies = {
            "scatter_add": lambda: zeros.scatter_add(0, index, source),
            "scatter": lambda: zeros.scatter(0, index, source),
            "scatter_reduce": lambda: zeros.scatter_reduce(0, index, source, "mean"),
            "index_add": lambda: zeros.index_add(0, index, source),
            "index_put": lambda: zeros.index_put((index,), source),
            "index_put accumulate": lambda: zeros.index_put((index,), source, accumulate=True),
            "index_copy": lambda: zeros.index_copy(0, index, source),
            "put": lambda: zeros.put(index, source),
            "bincount": lambda: torch.bincount(index, source),
            "histc": lambda: torch.histc(source, 20),
            "embedding": embedding_gradient,
            "grid_sample": grid_gradients,
            "max_pool2d": pooled,
            "interpolate": lambda: torch.autograd.grad(
                torch.nn.functional.interpolate(image, scale_factor=2.3, mode="bilinear")
                .square()
                .sum(),
                image,
            ),
            "cumsum": lambda: source.cumsum(0),
            "sum": lambda: source.sum(),
            "matmul": lambda: self.a @ self.b,
            "sort": lambda: index.sort(),
        }
        with ocl.flags(deterministic=True, benchmark=True):
            for name, body in bodies.items():
                with self.subTest(operator=name):
                    first, *others = (body() for _ in range(4))
                    for other in others:
                        for x, y in zip(
                            *((t,) if torch.is_tensor(t) else t for t in (first, other)),
                            strict=True,
                        ):
                            self.assertTrue(torch.equal(x, y))

    def test_memory_that_nothing_wrote_is_filled(self) -> None:
        torch.use_deterministic_algorithms(True)
        try:
            self.assertTrue(torch.empty(100, device="ocl").isnan().all())
            self.assertTrue((torch.empty(5, 2, dtype=torch.int32, device="ocl") == 2**31 - 1).all())
            torch.utils.deterministic.fill_uninitialized_memory = False
            before = torch.ocl.counters()["operators"]
            torch.empty(100, device="ocl")
            self.assertEqual(torch.ocl.counters()["operators"], before)
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = True
            torch.use_deterministic_algorithms(False)


if __name__ == "__main__":
    unittest.main()
