"""Devices without float64: such tensors are stored, moved and converted; single numbers are computed with by the host."""

import os
import unittest

os.environ["OCLTENSOR_FLOAT64"] = "0"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_ocl  # noqa: E402, F401

TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


def doubles() -> torch.Tensor:
    """Every kind of float64: both sides of each rounding to 16 and 32 bits, denormals, limits, random bits."""
    torch.manual_seed(5)
    bits = torch.randint(-(2**63), 2**63 - 1, (20000,))
    near = torch.randint(0, 2**32, (20000,)).to(torch.int32).view(torch.float32).double()
    ulps = torch.randint(-3, 4, (20000,))
    between = (near.view(torch.int64) + (ulps << 28)).view(torch.float64)
    halves = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16).double()
    half_ties = (halves.view(torch.int64) + (1 << 41)).view(torch.float64)
    past_ties = (half_ties.view(torch.int64) + 1).view(torch.float64)
    special = torch.tensor([0.0, -0.0, 1e-310, 5e-324, 1.4e-45, 7e-46, 3.4028235677973366e38, 1e300, float("inf"), -float("inf"), float("nan"), 2.0**63])
    return torch.cat([bits.view(torch.float64), near, between, halves, half_ties, past_ties, special, torch.arange(-300.0, 300.0).double() / 2])


class NoFloat64(unittest.TestCase):
    def same(self, got: torch.Tensor, expected: torch.Tensor) -> None:
        got = got.cpu()
        self.assertEqual(got.dtype, expected.dtype)
        if not got.dtype.is_floating_point:
            return self.assertTrue(torch.equal(got, expected))
        nan = expected.isnan()
        self.assertTrue(torch.equal(got.isnan(), nan))
        integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}[got.element_size()]
        self.assertTrue(torch.equal(got.view(integers)[~nan], expected.view(integers)[~nan]))

    def test_the_device_says_so(self):
        self.assertFalse(torch.ocl.get_device_properties(0).has_fp64)
        with self.assertRaisesRegex(NotImplementedError, "has no float64 .* stored, moved and converted .* add.out computes .*OCLTENSOR_ENABLE_FALLBACK"):
            torch.ones(2, dtype=torch.float64, device="ocl") + 1

    def test_conversions_from_float64_round_as_the_cpu(self):
        x = doubles()
        for dtype in TYPES:
            with self.subTest(dtype=dtype):
                # What an integer type does not hold is undefined in C: only what fits is compared.
                fits = x
                if not dtype.is_floating_point and dtype is not torch.bool:
                    info = torch.iinfo(dtype)
                    fits = x[(x > info.min - 1.0) & (x < info.max + 1.0 if dtype is not torch.int64 else x < 2.0**63)]
                self.same(fits.to("ocl").to(dtype), fits.to(dtype))

    def test_conversions_to_float64_are_exact(self):
        for dtype in TYPES:
            with self.subTest(dtype=dtype):
                if dtype.is_floating_point:
                    integer = torch.int32 if dtype is torch.float32 else torch.int16
                    limit = 2 ** (31 if dtype is torch.float32 else 15)
                    x = torch.randint(-limit, limit - 1, (60000,)).to(integer).view(dtype)
                elif dtype is torch.bool:
                    x = torch.tensor([True, False])
                else:
                    info = torch.iinfo(dtype)
                    x = torch.cat([torch.randint(info.min, info.max, (10000,)).to(dtype), torch.tensor([info.min, info.max, 0], dtype=dtype)])
                self.same(x.to("ocl").double(), x.double())

    def test_moves(self):
        x = doubles()[:600].reshape(20, 30)
        y = x.to("ocl")
        index = torch.tensor([3, 0, 7])
        moves = {
            "clone": lambda t, i: t.clone(),
            "strided": lambda t, i: t.t()[1::2].contiguous(),
            "expand": lambda t, i: t[:1].expand(4, 30).contiguous(),
            "cat": lambda t, i: torch.cat([t, t[:3]], 1 - 1),
            "stack": lambda t, i: torch.stack([t, t], 1),
            "flip": lambda t, i: t.flip(0, 1),
            "roll": lambda t, i: t.roll(3, 1),
            "index": lambda t, i: t[i],
            "index_select": lambda t, i: t.index_select(1, i),
            "gather": lambda t, i: t.gather(0, i.reshape(1, 3).expand(2, 3)),
            "mask": lambda t, i: t[(i[:, None] == torch.arange(30, device=i.device)).any(0).expand(20, 30)],
            "tril": lambda t, i: t.tril(),
            "fill": lambda t, i: torch.full_like(t, 1 / 3),
            "zeros": lambda t, i: torch.zeros_like(t),
            "repeat": lambda t, i: t.repeat(2, 1),
        }
        for name, move in moves.items():
            with self.subTest(name):
                self.same(move(y, index.to("ocl")), move(x, index))
        y[2:4] = 7
        self.assertEqual(y[3, 0].item(), 7)

    def test_printing(self):
        for x in (torch.tensor([0.5, 1e-6, 3e7]), torch.tensor([1.5, 2.0], dtype=torch.float64), torch.arange(5000.0), torch.arange(5000.0).double(), torch.tensor(2.5)):
            self.assertEqual(str(x.to("ocl")).replace(", device='ocl:0'", ""), str(x))

    def test_single_numbers(self):
        a = torch.tensor(3.0, dtype=torch.float64, device="ocl")
        self.assertEqual((1 / a).item(), 1 / 3)
        self.assertEqual((a * torch.tensor([2.0], device="ocl")).item(), 6)
        self.assertTrue(bool(a > 2) and a.sqrt().item() == 3**0.5)
        a += 1
        self.assertEqual(a.item(), 4)

    def test_grad_scaler(self):
        torch.manual_seed(1)
        model = torch.nn.Linear(5, 2)
        ours = torch.nn.Linear(5, 2)
        ours.load_state_dict(model.state_dict())
        ours.to("ocl")
        x = torch.randn(4, 5)
        for net, device in ((model, "cpu"), (ours, "ocl")):
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            scaler = torch.amp.GradScaler(device, init_scale=1024.0)
            for _ in range(3):
                optimizer.zero_grad()
                scaler.scale(net(x.to(device)).square().mean()).backward()
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
        # Two matrix products and a mean of eight: a handful of float32 roundings a step.
        torch.testing.assert_close(ours.weight.cpu(), model.weight, rtol=1e-5, atol=1e-6)

    def test_training_of_a_network(self):
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)).to("ocl")
        optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
        x, target = torch.randn(16, 3, 8, 8, device="ocl"), torch.randint(0, 4, (16,), device="ocl")
        losses = []
        for _ in range(8):
            loss = F.cross_entropy(net(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.5 * losses[0])


if __name__ == "__main__":
    unittest.main()
