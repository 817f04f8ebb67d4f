"""Copies that swap dimensions, by blocks, against the CPU: every width of elements, edges of
blocks, offsets, gaps, both orders of maps; what is beside the target stays."""

import random
import unittest

import gpu_style
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

TYPES = (
    torch.bool,
    torch.uint8,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int64,
    torch.complex64,
    torch.complex128,
)
SIZES = {2: (1, 2, 15, 16, 17, 63, 64, 65, 130), 3: (1, 3, 16, 33, 70), 4: (1, 2, 3, 16, 17, 33)}


class Transposes(gpu_style.InGpuStyle, unittest.TestCase):
    def choice(self) -> str:
        return torch.backends.ocl.last_choices()["copy"]

    def test_choice(self) -> None:
        a = torch.randn(70, 90, device="ocl")
        a.T.contiguous()
        ours = "copy.transpose_gpu" if gpu_style.IS_GPU_STYLE else "copy.transpose"
        self.assertEqual(self.choice(), ours)
        a[:3].T.contiguous()
        self.assertEqual(self.choice(), "copy.elementwise")

    def test_random(self) -> None:
        torch.manual_seed(1)
        draw = random.Random(1)
        for _ in range(120):
            dtype, rank = draw.choice(TYPES), draw.randint(2, 4)
            sizes = [draw.choice(SIZES[rank]) for _ in range(rank)]
            a = torch.randn(sizes, dtype=dtype if dtype.is_complex else None)
            a = a if dtype.is_complex else (a * 50).to(dtype)
            moved, order = a.to("ocl"), draw.sample(range(rank), rank)
            if draw.random() < 0.3:
                a, moved = a[sizes[0] // 2 :], moved[sizes[0] // 2 :]
            if draw.random() < 0.3:
                a, moved = a[..., ::2], moved[..., ::2]
            with self.subTest(dtype=dtype, sizes=sizes, order=order):
                want = a.permute(order)
                self.assertTrue(torch.equal(moved.permute(order).contiguous().cpu(), want))
                if rank == 4:
                    last = moved.contiguous(memory_format=torch.channels_last)
                    self.assertTrue(torch.equal(last.cpu(), a))

    def test_what_is_beside_stays(self) -> None:
        for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.float64):
            a = torch.arange(66 * 50).remainder(250).to(dtype).view(66, 50)
            room = torch.full((52, 70), 7, dtype=dtype, device="ocl")
            room[1:51, 2:68].copy_(a.to("ocl").T)
            want = torch.full((52, 70), 7, dtype=dtype)
            want[1:51, 2:68] = a.T
            self.assertTrue(torch.equal(room.cpu(), want), dtype)

    def test_bits_of_nan(self) -> None:
        bits = torch.randint(0x7FC00001, 0x7FFFFFFF, (64, 48), dtype=torch.int32)
        moved = bits.to("ocl").view(torch.float32).T.contiguous()
        self.assertTrue(torch.equal(moved.view(torch.int32).cpu(), bits.T))


if __name__ == "__main__":
    unittest.main()
