"""Autocast and loss scaling: types and values of autocast on the CPU's lists or of explicit
casts."""

import copy
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn
from torch.nn import functional as F

HALVES = (torch.float16, torch.bfloat16)


def on_ocl(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to("ocl", dtype)


def launches(work) -> int:
    before = torch.ocl.counters()["launches"]
    work()
    torch.ocl.synchronize()
    return torch.ocl.counters()["launches"] - before


LOWER = {
    "mm": lambda: on_ocl(3, 4) @ on_ocl(4, 2),
    "linear": lambda: F.linear(on_ocl(3, 4), on_ocl(2, 4), on_ocl(2)),
    "addmm": lambda: torch.addmm(on_ocl(3, 2), on_ocl(3, 4), on_ocl(4, 2)),
    "bmm": lambda: torch.bmm(on_ocl(2, 3, 4), on_ocl(2, 4, 5)),
    "conv2d": lambda: F.conv2d(on_ocl(1, 2, 5, 5), on_ocl(3, 2, 3, 3)),
    "attention": lambda: F.scaled_dot_product_attention(*[on_ocl(1, 2, 4, 8)] * 3),
    "einsum": lambda: torch.einsum("ij,jk->ik", on_ocl(3, 4), on_ocl(4, 2)),
}
FLOAT32 = {
    "exp": lambda x: x.exp(),
    "log": lambda x: x.abs().log(),
    "pow": lambda x: x.abs().pow(1.5),
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "sum": lambda x: x.sum(),
    "norm": lambda x: x.norm(),
    "cumsum": lambda x: x.cumsum(0),
    "mse_loss": lambda x: F.mse_loss(x, x * 2),
    "nll_loss": lambda x: F.nll_loss(x, torch.tensor([1, 0, 2], device="ocl")),
}

# Operators in no list that are made of some that are in one.
COMPOSITES = {
    "matrix_exp": lambda: torch.matrix_exp(on_ocl(5, 5)),
    "pinv": lambda: torch.linalg.pinv(on_ocl(5, 3)),
    "lstsq": lambda: torch.linalg.lstsq(on_ocl(6, 3), on_ocl(6, 2)).solution,
    "ormqr": lambda: torch.ormqr(*torch.geqrf(on_ocl(4, 4)), on_ocl(4, 3)),
    "mm to float32": lambda: torch.mm(
        on_ocl(3, 4, dtype=torch.bfloat16),
        on_ocl(4, 2, dtype=torch.bfloat16),
        out_dtype=torch.float32,
    ),
    "slow_conv_dilated2d": lambda: torch.ops.aten.slow_conv_dilated2d(
        on_ocl(1, 2, 6, 6), on_ocl(3, 2, 3, 3), [3, 3], None, [1, 1], [0, 0], [2, 2]
    ),
    "int_mm": lambda: torch._int_mm(*[torch.full((17, 17), 101).to("ocl", torch.int8)] * 2),
}


class Autocast(unittest.TestCase):
    def test_composites(self) -> None:
        for name, call in COMPOSITES.items():
            with self.subTest(name=name):
                want = call()
                with torch.autocast("ocl", dtype=torch.bfloat16):
                    got = call()
                self.assertEqual(got.dtype, want.dtype)
                self.assertTrue(torch.equal(got.cpu(), want.cpu()))

    def test_lower_precision(self) -> None:
        for dtype in HALVES:
            for name, call in LOWER.items():
                with self.subTest(name=name, dtype=dtype):
                    with torch.autocast("ocl", dtype=dtype):
                        got = call()
                    self.assertEqual(got.dtype, dtype)
                    want = call()
                    self.assertEqual(want.dtype, torch.float32)
                    eps = torch.finfo(dtype).eps
                    torch.testing.assert_close(got.float(), want, rtol=8 * eps, atol=16 * eps)

    def test_float32(self) -> None:
        for dtype in HALVES:
            x = on_ocl(3, 4, dtype=dtype)
            for name, call in FLOAT32.items():
                with self.subTest(name=name, dtype=dtype):
                    with torch.autocast("ocl", dtype=dtype):
                        got = call(x)
                    self.assertEqual(got.dtype, torch.float32)
                    eps = torch.finfo(dtype).eps  # what `call` computes before is rounded
                    torch.testing.assert_close(got, call(x.float()), rtol=4 * eps, atol=4 * eps)

    def test_fourier_transforms(self) -> None:
        """In float32, as on the CPU; outside of autocast PyTorch refuses 16 bits, as there."""
        x = torch.randn(6, 8, generator=torch.Generator().manual_seed(1))
        calls = {
            **{
                name: getattr(torch.fft, name)
                for name in (
                    "fft",
                    "ifft",
                    "fft2",
                    "ifft2",
                    "fftn",
                    "ifftn",
                    "rfft",
                    "rfft2",
                    "rfftn",
                )
            },
            **{name: getattr(torch.fft, name) for name in ("irfft", "irfft2", "irfftn", "hfft")},
            **{name: getattr(torch.fft, name) for name in ("ihfft", "hfft2", "ihfft2", "hfftn")},
            "ihfftn": torch.fft.ihfftn,
            "stft": lambda t: torch.stft(t.flatten(), 8, return_complex=True),
        }
        for half in HALVES:
            rounded = x.to(half)
            for name, call in calls.items():
                with self.subTest(name, half=half):
                    with torch.autocast("ocl", half):
                        got = call(rounded.to("ocl"))
                    torch.testing.assert_close(
                        got.cpu(), call(rounded.float()), rtol=1e-5, atol=1e-5
                    )
                    if name != "stft":
                        with self.assertRaisesRegex(RuntimeError, "Unsupported dtype"):
                            call(rounded.to("ocl"))
            weight = torch.randn(8, 8, generator=torch.Generator().manual_seed(2)).to("ocl")
            leaf = weight.requires_grad_()
            with torch.autocast("ocl", half):
                spectrum = torch.fft.rfft(F.linear(x.to("ocl"), leaf))
                spectrum.abs().sum().backward()
            self.assertEqual(spectrum.dtype, torch.complex64)
            self.assertTrue(leaf.grad.isfinite().all())

    def test_promotion(self) -> None:
        half, full = on_ocl(3, 4, dtype=torch.float16), on_ocl(3, 4)
        with torch.autocast("ocl"):
            self.assertEqual(torch.addcmul(half, full, half).dtype, torch.float32)
            self.assertEqual(torch.atan2(half, half).dtype, torch.float16)
            self.assertEqual((half + full).dtype, torch.float32)  # in no list
            self.assertEqual(torch.cat([half, full]).dtype, torch.float32)
            self.assertEqual(
                torch.mm(full.double(), full.t().double()).dtype, torch.float64
            )  # never narrowed
            self.assertEqual(torch.arange(3, device="ocl").sum().dtype, torch.int64)

    def test_state(self) -> None:
        self.assertEqual(torch.get_autocast_dtype("ocl"), torch.float16)
        self.assertFalse(torch.is_autocast_enabled("ocl"))
        a = on_ocl(3, 3)
        with torch.autocast("ocl", dtype=torch.bfloat16):
            self.assertTrue(torch.is_autocast_enabled("ocl"))
            self.assertEqual((a @ a).dtype, torch.bfloat16)
            with torch.autocast("ocl", enabled=False):
                self.assertEqual((a @ a).dtype, torch.float32)
            with torch.autocast("ocl", dtype=torch.float16):
                self.assertEqual((a @ a).dtype, torch.float16)
            self.assertEqual(
                (torch.ones(2, 2) @ torch.ones(2, 2)).dtype, torch.float32
            )  # CPU: not meant
        self.assertFalse(torch.is_autocast_enabled("ocl"))
        with self.assertWarns(UserWarning), torch.autocast("ocl", dtype=torch.float64):
            self.assertEqual((a @ a).dtype, torch.float32)

    def test_unsafe_loss(self) -> None:
        with torch.autocast("ocl"), self.assertRaisesRegex(RuntimeError, "unsafe"):
            F.binary_cross_entropy(torch.full((2,), 0.5, device="ocl"), torch.ones(2, device="ocl"))

    def test_cast_cache(self) -> None:
        weight = on_ocl(16, 16).requires_grad_()
        x = on_ocl(2, 16, dtype=torch.float16)
        with torch.autocast("ocl"):
            first = launches(lambda: F.linear(x, weight))
            self.assertEqual(launches(lambda: F.linear(x, weight)), first - 1)  # the cast
            torch.clear_autocast_cache()
            self.assertEqual(launches(lambda: F.linear(x, weight)), first)
        with torch.autocast("ocl", cache_enabled=False):
            self.assertEqual(launches(lambda: F.linear(x, weight)), first)
            self.assertEqual(launches(lambda: F.linear(x, weight)), first)

    def test_decorators_and_checkpoints(self) -> None:
        @torch.amp.custom_fwd(device_type="ocl", cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        class Double(torch.autograd.Function):
            @staticmethod
            def backward(ctx, g):
                return g * 2

        Double.forward = staticmethod(forward)
        Double.backward = staticmethod(torch.amp.custom_bwd(Double.backward, device_type="ocl"))
        x = on_ocl(3, dtype=torch.float16).requires_grad_()
        with torch.autocast("ocl"):
            y = Double.apply(x)
        self.assertEqual(y.dtype, torch.float32)
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 2, 2])

        layer = nn.Linear(8, 8).to("ocl")
        with torch.autocast("ocl", dtype=torch.bfloat16):
            out = torch.utils.checkpoint.checkpoint(
                layer, on_ocl(2, 8).requires_grad_(), use_reentrant=False
            )
        self.assertEqual(out.dtype, torch.bfloat16)
        out.float().sum().backward()
        self.assertEqual(layer.weight.grad.dtype, torch.float32)


def network() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 4)).to("ocl")


class Scaling(unittest.TestCase):
    def train(self, dtype, optimizer, poison_at=None, steps=8):
        """Losses, and the parameters and scale after each step."""
        model = network()
        opt = optimizer(model.parameters())
        scaler = torch.amp.GradScaler("ocl", init_scale=1024.0, growth_interval=3)
        losses, history = [], []
        for step in range(steps):
            x, y = on_ocl(6, 12), torch.arange(6, device="ocl") % 4
            opt.zero_grad()
            with torch.autocast("ocl", dtype=dtype):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            if step == poison_at:
                model[0].weight.grad[1, 2] = float("inf")
            scaler.step(opt)
            scaler.update()
            losses.append(loss.item())
            history.append(([p.detach().cpu() for p in model.parameters()], scaler.get_scale()))
        return losses, history

    OPTIMIZERS = {
        "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
        "fused sgd": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, fused=True),
        "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01),
        "fused adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01, fused=True),
    }

    def test_loop(self) -> None:
        for dtype in HALVES:
            for name, optimizer in self.OPTIMIZERS.items():
                with self.subTest(dtype=dtype, name=name):
                    losses, history = self.train(dtype, optimizer)
                    self.assertLess(losses[-1], 0.6 * losses[0])
                    # Doubled after every third good step.
                    scales = [s for _, s in history]
                    self.assertEqual(scales, [1024, 1024, 2048, 2048, 2048, 4096, 4096, 4096])

    def test_infinite_gradient_is_skipped(self) -> None:
        for name, optimizer in self.OPTIMIZERS.items():
            with self.subTest(name=name):
                _, history = self.train(torch.float16, optimizer, poison_at=4)
                for before, after in zip(history[3][0], history[4][0]):
                    self.assertTrue(torch.equal(before, after))
                self.assertFalse(torch.equal(history[4][0][0], history[5][0][0]))
                self.assertEqual([s for _, s in history][2:], [2048, 2048, 1024, 1024, 1024, 2048])

    def test_fused_and_plain_agree(self) -> None:
        for kind in ("sgd", "adamw"):
            plain = self.train(torch.float16, self.OPTIMIZERS[kind])[1]
            fused = self.train(torch.float16, self.OPTIMIZERS["fused " + kind])[1]
            for a, b in zip(plain[-1][0], fused[-1][0]):
                torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-4)

    def test_unscale_and_clip(self) -> None:
        model = network()
        opt = torch.optim.SGD(model.parameters(), lr=1.0)
        scaler = torch.amp.GradScaler("ocl", init_scale=64.0)
        loss = model(on_ocl(6, 12)).square().mean()
        scaler.scale(loss).backward()
        scaled = [p.grad.clone() for p in model.parameters()]
        count = launches(lambda: scaler.unscale_(opt))
        self.assertLessEqual(count, 8)  # one for the gradients, the others for 1 / scale
        for p, g in zip(model.parameters(), scaled):
            self.assertTrue(torch.equal(p.grad, g / 64))
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        torch.testing.assert_close(
            norm.cpu(), torch.stack([g.norm().cpu() for g in scaled]).norm() / 64
        )
        before = [p.detach().clone() for p in model.parameters()]
        scaler.step(opt)
        moved = torch.stack([(a - b).norm() for a, b in zip(before, model.parameters())]).norm()
        self.assertAlmostEqual(moved.item(), 0.1, places=4)

    def test_kernels(self) -> None:
        for dtype in (torch.float16, torch.float32, torch.float64):
            for bad in (None, float("inf"), float("-inf"), float("nan")):
                with self.subTest(dtype=dtype, bad=bad):
                    host = [
                        torch.linspace(-3, 5, 40).to(dtype).reshape(5, 8).t(),
                        torch.ones(3, dtype=dtype),
                    ]
                    if bad is not None:
                        host[1][2] = bad
                    device = [t.to("ocl") for t in host]
                    found = torch.zeros((), device="ocl")
                    inverse = torch.full((), 0.25, device="ocl")
                    torch._amp_foreach_non_finite_check_and_unscale_(device, found, inverse)
                    self.assertEqual(found.item(), 0.0 if bad is None else 1.0)
                    for a, b in zip(device, host):
                        torch.testing.assert_close(
                            a.cpu(), b * 0.25, rtol=0, atol=0, equal_nan=True
                        )
        mixed = [torch.ones(2, device="ocl", dtype=t) for t in (torch.float16, torch.float32)]
        torch._amp_foreach_non_finite_check_and_unscale_(mixed, found.zero_(), inverse)
        self.assertEqual([t.tolist() for t in mixed], [[0.25, 0.25]] * 2)

    def test_state(self) -> None:
        scaler = torch.amp.GradScaler("ocl", init_scale=8.0)
        scaler.scale(torch.ones((), device="ocl"))
        other = torch.amp.GradScaler("ocl")
        other.load_state_dict(copy.deepcopy(scaler.state_dict()))
        self.assertEqual(other.get_scale(), 8.0)
        off = torch.amp.GradScaler("ocl", enabled=False)
        self.assertEqual(off.scale(torch.ones((), device="ocl")).item(), 1.0)


if __name__ == "__main__":
    unittest.main()
