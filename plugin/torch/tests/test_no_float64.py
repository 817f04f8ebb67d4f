"""Devices without float64: such tensors are stored, moved and converted; single numbers are
computed with by the host."""

import os
import unittest

os.environ["OCLTENSOR_FLOAT64"] = "0"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_ocl  # noqa: E402, F401

TYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


def doubles() -> torch.Tensor:
    """Every kind of float64: both sides of each rounding to 16 and 32 bits, denormals, limits,
    random bits."""
    torch.manual_seed(5)
    bits = torch.randint(-(2**63), 2**63 - 1, (20000,))
    near = torch.randint(0, 2**32, (20000,)).to(torch.int32).view(torch.float32).double()
    ulps = torch.randint(-3, 4, (20000,))
    between = (near.view(torch.int64) + (ulps << 28)).view(torch.float64)
    halves = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16).double()
    half_ties = (halves.view(torch.int64) + (1 << 41)).view(torch.float64)
    past_ties = (half_ties.view(torch.int64) + 1).view(torch.float64)
    special = torch.tensor(
        [
            0.0,
            -0.0,
            1e-310,
            5e-324,
            1.4e-45,
            7e-46,
            3.4028235677973366e38,
            1e300,
            float("inf"),
            -float("inf"),
            float("nan"),
            2.0**63,
        ]
    )
    return torch.cat(
        [
            bits.view(torch.float64),
            near,
            between,
            halves,
            half_ties,
            past_ties,
            special,
            torch.arange(-300.0, 300.0).double() / 2,
        ]
    )


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

    def test_the_device_says_so(self) -> None:
        self.assertFalse(torch.ocl.get_device_properties(0).has_fp64)
        with self.assertRaisesRegex(
            NotImplementedError,
            "has no float64 .* stored, moved and converted .* add.out computes "
            ".*OCLTENSOR_ENABLE_FALLBACK",
        ):
            torch.ones(2, dtype=torch.float64, device="ocl") + 1

    def test_conversions_from_float64_round_as_the_cpu(self) -> None:
        x = doubles()
        for dtype in TYPES:
            with self.subTest(dtype=dtype):
                # What an integer type does not hold is undefined in C: only what fits is compared.
                fits = x
                if not dtype.is_floating_point and dtype is not torch.bool:
                    info = torch.iinfo(dtype)
                    fits = x[
                        (x > info.min - 1.0)
                        & (x < info.max + 1.0 if dtype is not torch.int64 else x < 2.0**63)
                    ]
                self.same(fits.to("ocl").to(dtype), fits.to(dtype))

    def test_conversions_to_float64_are_exact(self) -> None:
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
                    x = torch.cat(
                        [
                            torch.randint(info.min, info.max, (10000,)).to(dtype),
                            torch.tensor([info.min, info.max, 0], dtype=dtype),
                        ]
                    )
                self.same(x.to("ocl").double(), x.double())

    def test_moves(self) -> None:
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
            "mask": lambda t, i: t[
                (i[:, None] == torch.arange(30, device=i.device)).any(0).expand(20, 30)
            ],
            "tril": lambda t, i: t.tril(),
            "fill": lambda t, i: torch.full_like(t, 1 / 3),
            "zeros": lambda t, i: torch.zeros_like(t),
            "repeat": lambda t, i: t.repeat(2, 1),
            "where": lambda t, i: torch.where(t.flip(0).signbit(), t, t.flip(1)),
            "where of float32": lambda t, i: torch.where(t.flip(0).signbit(), t, t.float()),
            "masked_fill": lambda t, i: t.masked_fill(t.signbit(), 1 / 3),
            "masked_fill of float32": lambda t, i: t.float().masked_fill(
                t.signbit(), torch.tensor(1 / 3, dtype=torch.float64, device=t.device)
            ),
            "scatter": lambda t, i: t.scatter(0, i[:, None].expand(3, 30), t.flip(0)),
            "scatter a number": lambda t, i: t.scatter(1, i[None, :].expand(20, 3), 1 / 3),
            "index_put": lambda t, i: t.index_put((i, i), t[0, :3]),
            "index_put of a mask": lambda t, i: t.index_put(
                (t.signbit(),), torch.tensor(1 / 3, dtype=torch.float64, device=t.device)
            ),
            "index_fill": lambda t, i: t.index_fill(0, i, 1 / 3),
            "index_copy": lambda t, i: t.index_copy(0, i, t[10:13]),
            "put": lambda t, i: t.put(i, t[0, :3]),
            "masked_scatter": lambda t, i: t.masked_scatter(t.signbit(), t.flip(0)),
            "nonzero": lambda t, i: t.relu().nonzero(),
            "any": lambda t, i: torch.stack([t.any(), t.relu().all(), t.relu()[0].any()]),
            "eye": lambda t, i: torch.eye(7, 5, dtype=torch.float64, device=t.device),
            "linspace": lambda t, i: torch.linspace(
                -1, 2, 13, dtype=torch.float64, device=t.device
            ),
            "arange": lambda t, i: torch.arange(-2, 9, 0.25, dtype=torch.float64, device=t.device)[
                ::2
            ].t(),
            "pad": lambda t, i: F.pad(t[None], (1, 2, 3, 4), mode="reflect"),
            "interpolate": lambda t, i: F.interpolate(
                t[None, None], scale_factor=2, mode="nearest"
            ),
            "sort": lambda t, i: t.sort(dim=1, stable=True)[1],
            "topk": lambda t, i: t.masked_fill(t.isnan(), 0).topk(3, 1)[0],
            "kthvalue": lambda t, i: t.kthvalue(2, 1)[0],
            "median": lambda t, i: t.nanmedian(1)[0],
            "foreach_zero": lambda t, i: (lambda ts: (torch._foreach_zero_(ts), torch.cat(ts))[1])(
                [t.clone(), t[:3].clone()]
            ),
            "foreach_copy": lambda t, i: (
                lambda ts: (torch._foreach_copy_(ts, [t, t.float()]), torch.cat(ts))[1]
            )([t.clone(), t.clone()]),
        }
        for name, move in moves.items():
            with self.subTest(name):
                self.same(move(y, index.to("ocl")), move(x, index))
        y[2:4] = 7
        self.assertEqual(y[3, 0].item(), 7)

    def test_what_needs_no_arithmetic(self) -> None:
        x = doubles()[::7][:9000]
        x = x.masked_fill(
            x.isnan(), float("nan")
        )  # no signalling ones: what fmax makes of them is up to the C library
        z = torch.tensor(
            [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-310, -1e-310, 1.0]
        )
        a, b = (
            torch.cat([x, z.repeat(8).double()]),
            torch.cat([x.flip(0), z.repeat_interleave(8).double()]),
        )
        tests = {
            "eq": torch.eq,
            "ne": torch.ne,
            "lt": torch.lt,
            "le": torch.le,
            "gt": torch.gt,
            "ge": torch.ge,
            "number": lambda u, v: u < 0.5,
            "float32": lambda u, v: u >= v.float(),
            "xor": torch.logical_xor,
            "and": torch.logical_and,
            "or": torch.logical_or,
            "not": lambda u, v: ~u.logical_not(),
            "isnan": lambda u, v: u.isnan(),
            "isinf": lambda u, v: u.isinf(),
            "isfinite": lambda u, v: u.isfinite(),
            "isposinf": lambda u, v: u.isposinf(),
            "isneginf": lambda u, v: u.isneginf(),
            "signbit": lambda u, v: u.signbit(),
            "abs": lambda u, v: u.abs(),
            "neg": lambda u, v: -u,
            "copysign": torch.copysign,
            "nan_to_num": lambda u, v: u.nan_to_num(),
            "nan_to_num of numbers": lambda u, v: u.nan_to_num(1.5, -2.0, 1 / 3),
        }
        # Which zero ATen gives where both are equal depends on its vectors: the sign of zero is
        # left out.
        choices = {
            "maximum": torch.maximum,
            "minimum": torch.minimum,
            "fmax": torch.fmax,
            "fmin": torch.fmin,
            "clamp": lambda u, v: u.clamp(-0.5, 1 / 3),
            "clamp of tensors": lambda u, v: u.clamp(v, u.flip(0)),
            "relu": lambda u, v: u.relu(),
            "sign": lambda u, v: u.sign(),
            "clamp_min": lambda u, v: u.clamp_min(v),
            "clamp_max": lambda u, v: u.clamp_max(0.25),
        }
        for name, test in (tests | choices).items():
            for way, form in (
                ("flat", lambda t: t),
                ("strided", lambda t: t[: 96 * 94].reshape(96, 94).t()[1::2]),
            ):
                with self.subTest(name, way=way):
                    expected = test(form(a), form(b))
                    got = test(form(a.to("ocl")), form(b.to("ocl"))).cpu()
                    if name in choices:
                        expected, got = (
                            expected.masked_fill(expected == 0, 0),
                            got.masked_fill(got == 0, 0),
                        )
                    self.same(got, expected)
        self.assertTrue(torch.equal(a[:99].to("ocl"), a[:99].to("ocl").clone()))

    def test_float32_beside_float64(self) -> None:
        x, number = torch.randn(5, 7), torch.tensor(1 / 3, dtype=torch.float64)
        self.same(x.to("ocl") * number.to("ocl"), x * number)
        out = torch.empty(5, 7, dtype=torch.float64, device="ocl")
        torch.add(x.to("ocl"), 1, out=out)
        self.same(out, torch.add(x, 1).double())
        with self.assertRaisesRegex(NotImplementedError, "has no float64"):
            x.to("ocl") * x.to("ocl").double()
        with self.assertRaisesRegex(NotImplementedError, "has no float64"):
            x.to("ocl").double().index_put(
                (torch.tensor([0], device="ocl"),), x[0].to("ocl").double(), accumulate=True
            )

    def test_integers_along_a_line(self) -> None:
        for start, end, count in (
            (0, 33, 100),
            (-5, 2**31 + 9, 1001),
            (7.9, -(2**40), 3),
            (4, 4, 1),
        ):
            for dtype in (torch.int64, torch.int32):
                if max(abs(start), abs(end)) >= torch.iinfo(dtype).max:
                    continue
                with self.subTest(start=start, end=end, dtype=dtype):
                    given = {"start": start, "end": end, "steps": count, "dtype": dtype}
                    ours = torch.linspace(**given, device="ocl")
                    self.assertTrue(torch.equal(ours.cpu(), torch.linspace(**given)))

    def test_printing(self) -> None:
        for x in (
            torch.tensor([0.5, 1e-6, 3e7]),
            torch.tensor([1.5, 2.0], dtype=torch.float64),
            torch.arange(5000.0),
            torch.arange(5000.0).double(),
            torch.tensor(2.5),
        ):
            self.assertEqual(str(x.to("ocl")).replace(", device='ocl:0'", ""), str(x))

    def test_single_numbers(self) -> None:
        a = torch.tensor(3.0, dtype=torch.float64, device="ocl")
        self.assertEqual((1 / a).item(), 1 / 3)
        self.assertEqual((a * torch.tensor([2.0], device="ocl")).item(), 6)
        self.assertTrue(bool(a > 2) and a.sqrt().item() == 3**0.5)
        a += 1
        self.assertEqual(a.item(), 4)

    def test_grad_scaler(self) -> None:
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

    def test_pseudo_inverses_of_a_batch(self) -> None:
        # ATen's tolerances are float64, a number for each matrix.
        torch.manual_seed(3)
        q = torch.linalg.qr(torch.randn(3, 7, 7))[0][..., :4]
        p = torch.linalg.qr(torch.randn(3, 5, 5))[0][..., :4]
        a = q * torch.tensor([3.0, 2.0, 1.0, 0.01]) @ p.mT  # singular values far from equal
        a[1] = q[1, :, :2] @ p[1, :, :2].mT  # rank 2
        # Values up to 100 of a condition of 300: 4 * 300 * eps * 100 where the smallest counts.
        for given in ({}, {"rtol": 0.1}, {"atol": torch.tensor(0.5)}):
            with self.subTest(given=given):
                there = {k: v.to("ocl") if torch.is_tensor(v) else v for k, v in given.items()}
                ours = torch.linalg.pinv(a.to("ocl"), **there).cpu()
                torch.testing.assert_close(
                    ours, torch.linalg.pinv(a, **given), rtol=1e-4, atol=2e-2 if not given else 1e-5
                )

    def test_training_of_a_network(self) -> None:
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.BatchNorm2d(8),
            torch.nn.GELU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 36, 4),
        ).to("ocl")
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
