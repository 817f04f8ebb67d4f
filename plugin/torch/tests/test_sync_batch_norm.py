"""The steps of nn.SyncBatchNorm against batch normalisation of the whole batch by torch's CPU in
float64: two processes are two halves of a batch, and a process group of one process."""

import unittest
from unittest import mock

import torch
import torch_ocl  # noqa: F401
from torch import nn

# Statistics and results are float32 sums of some hundred terms near 1.
SINGLE = {"rtol": 1e-4, "atol": 2e-5}
# 16-bit results are rounded once more: eps is 2^-10 and 2^-7.
TOLERANCE = {
    torch.float32: SINGLE,
    torch.float64: {"rtol": 1e-9, "atol": 1e-10},
    torch.float16: {"rtol": 2e-3, "atol": 2e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1.6e-2},
}
SHAPES = ((8, 3), (6, 4, 5), (4, 2, 3, 7), (2, 3, 2, 3, 4))


def close(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> None:
    torch.testing.assert_close(got.detach().cpu().double(), want.detach(), **TOLERANCE[dtype])


class Steps(unittest.TestCase):
    def test_two_halves_are_a_batch(self) -> None:
        for dtype in TOLERANCE:
            for shape in SHAPES:
                for affine in (True, False):
                    with self.subTest(dtype=dtype, shape=shape, affine=affine):
                        self.halves(dtype, shape, affine)

    def halves(self, dtype: torch.dtype, shape: tuple[int, ...], affine: bool) -> None:
        torch.manual_seed(1)
        channels, eps = shape[1], 1e-3
        x, dy = (torch.randn(shape).to(dtype) for _ in range(2))
        x += 3
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        w, b = ((torch.rand(channels, dtype=wide) + 0.5 if affine else None) for _ in range(2))
        mean, var = torch.zeros(channels, dtype=wide), torch.ones(channels, dtype=wide)

        # torch's CPU in float64
        want_x = x.clone().double().requires_grad_()
        weights = [t.clone().double().requires_grad_() for t in (w, b)] if affine else [None] * 2
        want_mean, want_var = mean.clone().double(), var.clone().double()
        want = nn.functional.batch_norm(want_x, want_mean, want_var, *weights, True, 0.3, eps)
        want.backward(dy.double())

        # ocl in two parts of different sizes
        cut = shape[0] // 2 + 1 if shape[0] > 2 else 1
        parts = [t.to("ocl") for t in (x[:cut], x[cut:])]
        grads = [t.to("ocl") for t in (dy[:cut], dy[cut:])]
        w, b = (None if t is None else t.to("ocl") for t in (w, b))
        mean, var = mean.to("ocl"), var.to("ocl")
        stats = [torch.batch_norm_stats(p, eps) for p in parts]
        self.assertEqual(stats[0][0].dtype, wide)
        means, invstds = (torch.stack([s[k] for s in stats]) for k in range(2))
        counts = torch.tensor([p.numel() / channels for p in parts], device="ocl")
        m, inv = torch.batch_norm_gather_stats_with_counts(
            parts[0], means, invstds, mean, var, 0.3, eps, counts
        )
        close(mean, want_mean, torch.float64 if wide == torch.float64 else torch.float32)
        close(var, want_var, torch.float64 if wide == torch.float64 else torch.float32)
        got = torch.cat([torch.batch_norm_elemt(p, w, b, m, inv, eps) for p in parts])
        self.assertEqual(got.dtype, dtype)
        close(got, want, dtype)
        out = torch.empty_like(parts[0])
        torch.batch_norm_elemt(parts[0], w, b, m, inv, eps, out=out)
        self.assertTrue(torch.equal(out, got[:cut]))

        reduced = [
            torch.batch_norm_backward_reduce(g, p, m, inv, w, True, affine, affine)
            for g, p in zip(grads, parts, strict=True)
        ]
        sums = [torch.stack([r[k] for r in reduced]).sum(0) for k in range(2)]
        got = torch.cat(
            [
                torch.batch_norm_backward_elemt(g, p, m, inv, w, *sums, counts.int())
                for g, p in zip(grads, parts, strict=True)
            ]
        )
        close(got, want_x.grad, dtype)
        if affine:
            for k, weight in enumerate(weights):
                grad = reduced[0][2 + k] + reduced[1][2 + k]
                torch.testing.assert_close(grad.cpu().double(), weight.grad, **TOLERANCE[wide])
        else:
            self.assertIsNone(reduced[0][2])

    def test_equal_counts(self) -> None:
        torch.manual_seed(2)
        means, invstds = torch.randn(3, 5), torch.rand(3, 5) + 0.5
        got, want = [], []
        for out, counts in ((got, False), (want, True)):
            mean, var = torch.zeros(5, device="ocl"), torch.ones(5, device="ocl")
            arguments = (torch.empty(2, 5, device="ocl"), means.to("ocl"), invstds.to("ocl"), mean)
            if counts:
                out += torch.batch_norm_gather_stats_with_counts(
                    *arguments, var, 0.1, 1e-5, torch.full((3,), 7.0, device="ocl")
                )
            else:
                out += torch.batch_norm_gather_stats(*arguments, var, 0.1, 1e-5, 7)
            out += [mean, var]
        for a, b in zip(got, want, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_update_stats(self) -> None:
        torch.manual_seed(3)
        for shape in SHAPES:
            x = torch.randn(shape) * 2 + 1
            running = [torch.zeros(shape[1]), torch.ones(shape[1])]
            theirs = [t.double() for t in running]
            ours = [t.to("ocl") for t in running]
            want = torch.batch_norm_update_stats(x.double(), *theirs, 0.2)
            got = torch.batch_norm_update_stats(x.to("ocl"), *ours, 0.2)
            for a, b in zip((*got, *ours), (*want, *theirs), strict=True):
                close(a, b, torch.float32)
            got = torch.batch_norm_update_stats(x.to("ocl"), None, None, 0.2)
            close(got[1], want[1], torch.float32)

    def test_out_forms(self) -> None:
        torch.manual_seed(4)
        x, w, b = torch.randn(5, 3, 4), torch.rand(3), torch.rand(3)
        want = torch.native_batch_norm(
            x.double(), w.double(), b.double(), None, None, True, 0, 1e-5
        )
        outs = [torch.empty(0, device="ocl") for _ in range(3)]
        torch.ops.aten._native_batch_norm_legit.no_stats_out(
            x.to("ocl"),
            w.to("ocl"),
            b.to("ocl"),
            True,
            0.0,
            1e-5,
            out=outs[0],
            save_mean=outs[1],
            save_invstd=outs[2],
        )
        for a, e in zip(outs, want, strict=True):
            close(a, e, torch.float32)


class Module(unittest.TestCase):
    def test_one_process_trains_as_batch_norm(self) -> None:
        torch.manual_seed(5)
        plain = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        ours = nn.SyncBatchNorm.convert_sync_batchnorm(plain).to("ocl")
        plain = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        plain.load_state_dict(ours.state_dict())
        plain.double()
        for model, kind in ((plain, torch.float64), (ours, torch.float32)):
            optimizer = torch.optim.SGD(model.parameters(), 0.05)
            for step in range(3):
                x = torch.randn(6, 2, 5, 5, generator=torch.Generator().manual_seed(step))
                model(x.to(next(model.parameters()).device, kind)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        for a, b in zip(ours.state_dict().values(), plain.state_dict().values(), strict=True):
            close(a, b.double(), torch.float32)

    def test_the_synchronised_path(self) -> None:
        """The function behind nn.SyncBatchNorm, with a group of one process: it gathers what it
        gave."""
        from torch.nn.modules._functions import SyncBatchNorm

        class Group:
            def _get_backend_name(self) -> str:
                return "gloo"

        torch.manual_seed(6)
        for dtype in (torch.float32, torch.float16):
            x = (torch.randn(6, 3, 4, 4) + 1).to(dtype)
            dy = torch.randn(x.shape).to(dtype)
            w, b = torch.rand(3) + 0.5, torch.rand(3)
            theirs = [t.double().requires_grad_() for t in (x, w, b)]
            mean, var = torch.zeros(3).double(), torch.ones(3).double()
            want = nn.functional.batch_norm(
                theirs[0], mean, var, theirs[1], theirs[2], True, 0.1, 1e-5
            )
            want.backward(dy.double())
            ours = [t.to("ocl").requires_grad_() for t in (x, w, b)]
            ours_mean, ours_var = torch.zeros(3, device="ocl"), torch.ones(3, device="ocl")
            gather = mock.patch(
                "torch.distributed.all_gather", lambda all, own, *_, **__: all[0].copy_(own)
            )
            with gather, mock.patch("torch.distributed.all_reduce"):
                got = SyncBatchNorm.apply(*ours, ours_mean, ours_var, 1e-5, 0.1, Group(), 1)
                got.backward(dy.to("ocl"))
            close(got, want, dtype)
            close(ours_mean, mean, torch.float32)
            close(ours_var, var, torch.float32)
            for a, e in zip(ours, theirs, strict=True):
                # Sums of many 16-bit terms: errors relative to the largest.
                scale = e.grad.abs().max()
                close(a.grad / scale.to("ocl", a.dtype), e.grad / scale, dtype)


if __name__ == "__main__":
    unittest.main()
