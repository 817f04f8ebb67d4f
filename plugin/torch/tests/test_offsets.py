"""Rows of different lengths that lie one after another: offsets and lengths that end early, late or
nowhere, of bags, segments, jagged tensors and repeats, as on the CPU. Wrong ones are in
test_faults.py."""

import itertools
import unittest

import torch
import torch.nn.functional as F
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import InGpuStyle

INDICES = [1, 1, 3, 0, 5, 1, 2, 2]
# The last offset is the end of the last bag.
ENDS = ([0, 3, 5], [0, 3, 8], [0, 0, 3, 3, 5, 5], [0, 0, 0], [0, 8], [0, 5, 5, 5])


def bag(
    device: str, offsets: list[int], mode: str, dtype: torch.dtype, **options: object
) -> tuple[torch.Tensor, ...]:
    """A bag's result, and the gradients of its weights and scales."""
    indices = torch.tensor(options.pop("indices", INDICES), dtype=torch.int64, device=device)
    leaves = [(torch.arange(18.0).view(6, 3) / 4).to(device, dtype).requires_grad_()]
    if options.pop("scaled", False):
        scales = torch.linspace(-1, 2, len(INDICES))[: len(indices)]
        leaves.append(scales.to(device, dtype).requires_grad_())
    out = F.embedding_bag(
        indices,
        leaves[0],
        torch.tensor(offsets, device=device),
        mode=mode,
        per_sample_weights=leaves[1] if len(leaves) > 1 else None,
        include_last_offset=True,
        **options,
    )
    weights = torch.linspace(0.5, 1.5, out.numel()).view(out.shape).to(device, dtype)
    (out * weights).sum().backward()
    return (out.detach(), *(leaf.grad.to_dense() for leaf in leaves))


class Offsets(InGpuStyle, unittest.TestCase):
    def test_indices_behind_the_last_bag_do_not_count(self) -> None:
        """As PyTorch documents it, "the ending index position of the last bag": as if the indices
        ended there. PyTorch's CPU does so for sums in float32 and 16 bits alone."""
        kinds = itertools.product(
            ENDS,
            ("sum", "mean", "max"),
            (torch.float32, torch.float16),
            ({}, {"padding_idx": 1}, {"sparse": True}),
        )
        for offsets, mode, dtype, options in kinds:
            if mode == "max" and "sparse" in options:
                continue
            with self.subTest(offsets=offsets, mode=mode, dtype=dtype, **options):
                cut = INDICES[: offsets[-1]]
                right = bag("cpu", offsets, mode, dtype, indices=cut, **options)
                got = bag("ocl", offsets, mode, dtype, **options)
                for a, b in zip(got, right, strict=True):
                    # Gradients in 16 bits are sums of few terms in another order.
                    torch.testing.assert_close(a.cpu(), b, rtol=2e-3, atol=2e-3)

    def test_scales(self) -> None:
        for offsets in ENDS[:4]:
            right = bag(
                "cpu", offsets, "sum", torch.float32, indices=INDICES[: offsets[-1]], scaled=True
            )
            got = bag("ocl", offsets, "sum", torch.float32, scaled=True)
            for a, b in zip(got[:2], right[:2], strict=True):
                torch.testing.assert_close(a.cpu(), b)
            torch.testing.assert_close(got[2].cpu()[: offsets[-1]], right[2])
            self.assertTrue((got[2].cpu()[offsets[-1] :] == 0).all())

    def test_reproducer(self) -> None:
        weight = torch.arange(18.0, device="ocl").view(6, 3)
        indices = torch.tensor(INDICES, device="ocl")
        for types in (torch.int64, torch.int32):
            got = F.embedding_bag(
                indices.to(types),
                weight,
                torch.tensor([0, 3, 5], device="ocl", dtype=types),
                mode="sum",
                include_last_offset=True,
            )
            self.assertEqual(got.tolist(), [[15, 18, 21], [15, 17, 19]])

    def test_no_bags(self) -> None:
        weight = torch.ones(6, 3, device="ocl")
        indices = torch.tensor(INDICES, device="ocl")
        for mode in ("sum", "mean", "max"):
            got = F.embedding_bag(
                indices,
                weight,
                torch.tensor([0], device="ocl"),
                mode=mode,
                include_last_offset=True,
            )
            self.assertEqual(got.shape, (0, 3))
        with self.assertRaisesRegex(RuntimeError, "include_last_offset: number of offset"):
            F.embedding_bag(
                indices,
                weight,
                torch.empty(0, dtype=torch.int64, device="ocl"),
                mode="sum",
                include_last_offset=True,
            )

    def test_segments(self) -> None:
        cases = {
            "early": {"offsets": [0, 2, 4]},
            "first later": {"offsets": [1, 2, 6]},
            "empty ones": {"offsets": [0, 0, 3, 3, 6]},
            "short": {"lengths": [2, 3]},
            "zeros": {"lengths": [0, 6, 0]},
        }
        for (name, where), reduce in itertools.product(
            cases.items(), ("sum", "mean", "max", "min", "prod")
        ):
            with self.subTest(name, reduce=reduce):
                results = []
                for device in ("cpu", "ocl"):
                    x = torch.arange(1.0, 7, device=device).requires_grad_()
                    given = {k: torch.tensor(v, device=device) for k, v in where.items()}
                    out = torch.segment_reduce(x, reduce, axis=0, unsafe=True, **given)
                    out.nan_to_num(0, 0, 0).sum().backward()
                    results.append((out.detach().cpu(), x.grad.cpu()))
                torch.testing.assert_close(results[1][0], results[0][0], equal_nan=True)
                torch.testing.assert_close(results[1][1], results[0][1])

    def test_jagged(self) -> None:
        ops = torch.ops.aten
        for offsets, length in itertools.product(
            ([0, 2, 6], [0, 2, 4], [0, 2, 8], [1, 2, 6], [0, 0, 6], [0]), (2, 4, 7)
        ):
            if offsets[-1] > 6 and length > 6:
                continue  # an error, in test_faults.py
            with self.subTest(offsets=offsets, length=length):
                results = [
                    ops._jagged_to_padded_dense_forward(
                        torch.arange(12.0, device=device).view(6, 2),
                        [torch.tensor(offsets, device=device)],
                        [length],
                        -1.0,
                    ).cpu()
                    for device in ("cpu", "ocl")
                ]
                torch.testing.assert_close(results[1], results[0])

    def test_repeats(self) -> None:
        for repeats in ([1, 2, 0], [0, 0, 3], [0], [5]):
            for types in (torch.int64, torch.int32):
                given = torch.tensor(repeats, dtype=types)
                right = torch.repeat_interleave(given)
                for size in (None, sum(repeats)):
                    got = torch.repeat_interleave(given.to("ocl"), output_size=size)
                    self.assertTrue(torch.equal(got.cpu(), right))
                    self.assertEqual(got.dtype, right.dtype)


if __name__ == "__main__":
    unittest.main()
