"""What the host reads and writes itself, on CPU drivers whose buffers it addresses, beside commands
that are still running; and the same by commands alone."""

import os
import random
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import run_again

# Long enough that commands are still running when the host comes to its next copy.
SIZE = 300_000


class InOrder(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def test_copies_and_kernels(self) -> None:
        """Whole and partial copies in both directions between kernels, beside the CPU's."""
        draw = random.Random(1)
        want = [torch.randn(SIZE) for _ in range(3)]
        got = [t.to("ocl") for t in want]
        for step in range(200):
            a, b = draw.sample(range(3), 2)
            part = slice(draw.randrange(SIZE // 2), draw.randrange(SIZE // 2, SIZE))
            kind = draw.randrange(6)
            if kind == 0:
                for t in (want, got):
                    t[a] = (t[a] + t[b]) / 2
            elif kind == 1:
                for t in (want, got):
                    t[a][part] = t[b][part]
            elif kind == 2:
                new = torch.randn(want[a][part].shape)
                want[a][part], got[a][part] = new, new.to("ocl")
            elif kind == 3:
                new = torch.randn(want[a][part].shape)
                for t in (want, got):
                    t[a][part].copy_(new)
                new.fill_(float("nan"))  # it may change after the call
            elif kind == 4:
                self.assertTrue(torch.equal(got[a][part].cpu(), want[a][part]), step)
            else:
                at = draw.randrange(SIZE)
                self.assertEqual(got[b][at].item(), want[b][at].item(), step)
        for ours, theirs in zip(got, want, strict=True):
            self.assertTrue(torch.equal(ours.cpu(), theirs))

    def test_a_write_waits_for_another_stream(self) -> None:
        """Also where its own stream has nothing to do."""
        side = torch.ocl.Stream()
        x, y = torch.ones(SIZE, device="ocl"), torch.ones(SIZE, device="ocl")
        torch.ocl.synchronize()
        for turn in range(20):
            with torch.ocl.stream(side):
                for _ in range(5):
                    y = y * 0.5 + x  # reads what is written next
            torch.ocl.current_stream().wait_stream(side)
            x.copy_(torch.full((SIZE,), float(turn)))
            side.wait_stream(torch.ocl.current_stream())
        want = torch.ones(SIZE)
        for x in (1.0, *map(float, range(19))):
            for _ in range(5):
                want = want * 0.5 + x
        torch.ocl.synchronize()
        self.assertTrue(torch.equal(y.cpu(), want))

    def test_memory_is_given_back_while_it_is_used(self) -> None:
        for turn in range(10):
            x = torch.full((2_000_000,), float(turn), device="ocl")
            y = (x + 1) * 2
            del x
            torch.ocl.empty_cache()
            self.assertEqual(y[-1].item(), 2 * (turn + 1))


@unittest.skipIf("OCLTENSOR_CAPS" in os.environ, "the inner run")
class ByCommands(unittest.TestCase):
    def test_again(self) -> None:
        run_again(self, OCLTENSOR_CAPS="host_addresses=0")


if __name__ == "__main__":
    unittest.main(warnings="ignore")
