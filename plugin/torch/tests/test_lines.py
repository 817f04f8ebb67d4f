"""cat, embedding and index_select of lines that start and end at any place, which GPUs move by up
to 16 bytes."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle

DTYPES = (torch.float32, torch.float16, torch.uint8, torch.int64, torch.complex64, torch.bool)


def draw(shape, dtype, at):
    """Row-major, `at` elements into its memory."""
    count = torch.Size(shape).numel()
    memory = torch.randint(0, 100, (at + count,)).to(dtype).to("ocl")
    return memory[at:].view(shape)


class Lines(InGpuStyle, unittest.TestCase):
    def check(self, call, *tensors) -> None:
        expected = call(*(t.cpu() for t in tensors))
        self.assertTrue(torch.equal(call(*tensors).cpu(), expected))

    def test_cat(self) -> None:
        torch.manual_seed(0)
        lengths = ((8, 4), (8, 0, 16), (3, 5, 7), (1,) * 9, tuple(range(4, 84, 4)))
        for dtype, widths, dim, at in itertools.product(DTYPES, lengths, (0, 1, 2), (0, 1, 4)):
            shapes = [[n if d == dim else 4 for d in range(3)] for n in widths]
            tensors = [draw(shape, dtype, at) for shape in shapes]
            with self.subTest(dtype=dtype, widths=widths, dim=dim, at=at):
                self.check(lambda *t, dim=dim: torch.cat(t, dim), *tensors)
        mixed = [
            draw((4, 3), torch.float32, 0).t(),
            draw((3, 4), torch.float16, 0),
            draw((3, 4), torch.float32, 0),
        ]
        self.check(lambda *t: torch.cat(t, 1), *mixed)
        out = torch.zeros(6, 8, device="ocl")
        torch.cat((mixed[2], mixed[2]), out=out[:, ::2])
        self.assertTrue(torch.equal(out[:, ::2].cpu(), torch.cat((mixed[2], mixed[2])).cpu()))
        self.assertEqual(out[:, 1::2].abs().max().item(), 0)

    def test_embedding_and_index_select(self) -> None:
        torch.manual_seed(1)
        index = torch.randint(0, 50, (7, 5)).to("ocl")
        for dtype, width, at in itertools.product(DTYPES, (1, 3, 4, 16, 24), (0, 1, 4)):
            with self.subTest(dtype=dtype, width=width, at=at):
                table = draw((50, width), dtype, at)
                if dtype.is_floating_point:
                    self.check(lambda i, t: torch.nn.functional.embedding(i, t), index, table)
                self.check(lambda t, i: torch.index_select(t, 0, i.view(-1)), table, index)
                self.check(
                    lambda t, i: torch.index_select(t, 1, i.view(-1) % t.shape[1]), table, index
                )
                self.check(lambda t, i: t[i], table, index)
                self.check(
                    lambda t, i: torch.index_select(t[:, : t.shape[1] // 2 + 1], 0, i.view(-1)),
                    table,
                    index,
                )


if __name__ == "__main__":
    unittest.main()
