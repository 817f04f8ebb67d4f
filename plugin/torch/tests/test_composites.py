"""Composites that PyTorch's op_db does not reach: recurrent cells, fast paths, out forms."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn


def close(test: unittest.TestCase, ours, theirs) -> None:
    # Sums of a few dozen products in another order: some 2^-24 of values near one.
    torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), rtol=1e-5, atol=2e-6)


def both(module: nn.Module, *inputs: torch.Tensor, **kwargs):
    """Outputs and gradients of `module` on the CPU and on ocl."""
    results = []
    for device in ("cpu", "ocl"):
        module = module.to(device).zero_grad() or module
        args = [t.detach().to(device).requires_grad_(t.is_floating_point()) for t in inputs]
        moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        out = module(*args, **moved)
        outs = list(torch.utils._pytree.tree_leaves(out))
        total = sum(
            (t * torch.linspace(0.5, 2, t.numel()).view_as(t).to(device)).sum() for t in outs
        )
        total.backward()
        grads = [p.grad for p in module.parameters()] + [t.grad for t in args if t.grad is not None]
        results.append([t.detach().cpu() for t in outs + grads])
    return results


def _flat(results) -> list[torch.Tensor]:
    """The tensors of a result, which may be a tuple of them and of tuples."""
    return (
        [results] if isinstance(results, torch.Tensor) else [t for r in results for t in _flat(r)]
    )


class Cells(unittest.TestCase):
    def test_recurrent(self) -> None:
        torch.manual_seed(3)
        for kind in (nn.LSTM, nn.GRU):
            for bias in (True, False):
                for two_ways in (True, False):
                    with self.subTest(kind=kind.__name__, bias=bias, two_ways=two_ways):
                        module = kind(5, 7, 2, bias=bias, bidirectional=two_ways)
                        theirs, ours = both(module, torch.randn(6, 3, 5))
                        self.assertEqual(len(theirs), len(ours))
                        for a, b in zip(ours, theirs):
                            close(self, a, b)

    def test_cells(self) -> None:
        torch.manual_seed(4)
        for kind, states in ((nn.LSTMCell, 2), (nn.GRUCell, 1)):
            with self.subTest(kind=kind.__name__):
                cell = kind(5, 7)
                x, h, c = torch.randn(3, 5), torch.randn(3, 7), torch.randn(3, 7)
                want = cell(x, (h, c) if states == 2 else h)
                state = (h.to("ocl"), c.to("ocl")) if states == 2 else h.to("ocl")
                got = cell.to("ocl")(x.to("ocl"), state)
                for a, b in zip(*((v if states == 2 else (v,)) for v in (got, want))):
                    close(self, a, b)

    def test_packed(self) -> None:
        torch.manual_seed(5)
        module = nn.LSTM(4, 6)
        x = torch.randn(7, 3, 4)
        lengths = torch.tensor([7, 5, 2])
        outs = []
        for device in ("cpu", "ocl"):
            packed = nn.utils.rnn.pack_padded_sequence(x.to(device), lengths)
            out, _ = nn.utils.rnn.pad_packed_sequence(module.to(device)(packed)[0])
            outs.append(out)
        close(self, outs[1], outs[0])


class FastPaths(unittest.TestCase):
    def test_attention(self) -> None:
        torch.manual_seed(6)
        module = nn.MultiheadAttention(12, 3, batch_first=True).eval()
        x = torch.randn(2, 5, 12)
        hidden = torch.zeros(2, 5, dtype=torch.bool)
        hidden[1, 3:] = True
        causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
        for options in (
            {},
            {"key_padding_mask": hidden},
            {"attn_mask": causal},
            {"average_attn_weights": False},
        ):
            with self.subTest(options=list(options)), torch.no_grad():
                outs = []
                for device in ("cpu", "ocl"):
                    y = x.to(device)
                    moved = {
                        k: v.to(device) if torch.is_tensor(v) else v for k, v in options.items()
                    }
                    outs.append(module.to(device)(y, y, y, **moved))
                for a, b in zip(outs[1], outs[0]):
                    close(self, a, b)

    def test_encoder_layer(self) -> None:
        torch.manual_seed(7)
        for first in (True, False):
            for activation in ("relu", "gelu"):
                with self.subTest(norm_first=first, activation=activation), torch.no_grad():
                    layer = nn.TransformerEncoderLayer(
                        12, 3, 24, 0.0, activation, batch_first=True, norm_first=first
                    ).eval()
                    x = torch.randn(2, 5, 12)
                    want = layer(x)
                    close(self, layer.to("ocl")(x.to("ocl")), want)

    def test_batch_norm_with_update(self) -> None:
        torch.manual_seed(8)
        x, w, b = torch.randn(4, 3, 5), torch.randn(3), torch.randn(3)
        results = []
        for device in ("cpu", "ocl"):
            mean, var = torch.zeros(3, device=device), torch.ones(3, device=device)
            args = [t.clone().to(device).requires_grad_() for t in (x, w, b)]
            out = torch.ops.aten._batch_norm_with_update(*args, mean, var, 0.1, 1e-5)[0]
            (out * torch.linspace(0, 3, 60).view(4, 3, 5).to(device)).sum().backward()
            results.append([out, mean, var, *(t.grad for t in args)])
        for got, want in zip(results[1], results[0]):
            close(self, got, want)


class WeightNorm(unittest.TestCase):
    def test_values_and_gradients(self) -> None:
        torch.manual_seed(10)
        for dim in (0, 2):
            v = torch.randn(3, 4, 5)
            g = torch.rand((3, 1, 1) if dim == 0 else (1, 1, 5)) + 0.5
            results = []
            for device in ("cpu", "ocl"):
                args = [t.clone().to(device).requires_grad_() for t in (v, g)]
                out = torch._weight_norm(*args, dim)
                (out * torch.linspace(-1, 2, 60).view(3, 4, 5).to(device)).sum().backward()
                results.append([out, *(t.grad for t in args)])
            for got, want in zip(results[1], results[0]):
                close(self, got, want)


class OutForms(unittest.TestCase):
    def test_resize_and_strides(self) -> None:
        torch.manual_seed(9)
        x = torch.randn(2, 4, 6, 5)
        call = torch.ops.aten
        cases = (
            (call.glu, (1,)),
            (call.reflection_pad2d, ([1, 2, 2, 1],)),
            (call.upsample_bicubic2d, ([9, 3], False)),
            (call.im2col, ([2, 3], [1, 1], [1, 0], [2, 1])),
        )
        for op, args in cases:
            with self.subTest(op=str(op)):
                want = op(x, *args)
                out = torch.empty(0, device="ocl")
                op.out(x.to("ocl"), *args, out=out)
                close(self, out, want)
                across = torch.empty(want.transpose(0, 1).shape, device="ocl").transpose(0, 1)
                op.out(x.to("ocl"), *args, out=across)
                close(self, across, want)

    def test_grid_sampler_far_points(self) -> None:
        x = torch.arange(1.0, 13).view(1, 1, 3, 4)
        grid = torch.tensor([[-5.0, 3.0], [float("nan"), 0.2], [1e30, -1e30], [0.3, -0.4]]).view(
            1, 2, 2, 2
        )
        for padding in ("border", "zeros"):
            for mode in ("bilinear", "nearest"):
                with self.subTest(mode=mode, padding=padding):
                    if padding == "zeros":  # there the CPU answers NaN to NaN, and CUDA 0
                        grid = grid.nan_to_num(-7)
                    want = nn.functional.grid_sample(x, grid, mode, padding, align_corners=False)
                    got = nn.functional.grid_sample(
                        x.to("ocl"), grid.to("ocl"), mode, padding, align_corners=False
                    )
                    torch.testing.assert_close(got.cpu(), want, equal_nan=True)

    def same(self, call, *tensors) -> None:
        want = call(*tensors)
        got = call(*[t.to("ocl") for t in tensors])
        for mine, theirs in zip(_flat(got), _flat(want), strict=True):
            torch.testing.assert_close(mine.cpu(), theirs, equal_nan=True, check_stride=True)

    def test_resampling_of_what_is_no_number(self) -> None:
        torch.manual_seed(6)
        image = torch.randn(2, 3, 7, 9)
        image[0, 0, 2, 3], image[1, 2, 0, 0] = float("nan"), float("inf")
        for mode, align, smooth, size in itertools.product(
            ("bilinear", "bicubic"),
            (False, True),
            (False, True),
            ((3, 4), (7, 9), (14, 18), (7, 5), (1, 1)),
        ):
            for format in (torch.contiguous_format, torch.channels_last):
                with self.subTest(mode=mode, align=align, smooth=smooth, size=size, format=format):
                    self.same(
                        lambda x, m=mode, a=align, s=smooth, n=size: nn.functional.interpolate(
                            x, size=n, mode=m, align_corners=a, antialias=s
                        ),
                        image.contiguous(memory_format=format),
                    )

    def test_fractional_pools_take_the_last_nan(self) -> None:
        torch.manual_seed(7)
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            image = torch.randn(2, 3, 11, 13).to(dtype)
            image[0, 0, 4, 4:6], image[1] = float("nan"), float("-inf")
            samples = torch.rand(2, 3, 2).to(dtype)
            for size in ((5, 6), (1, 1), (9, 12)):
                with self.subTest(dtype=dtype, size=size):
                    self.same(
                        lambda x, s, n=size: nn.functional.fractional_max_pool2d(
                            x, (3, 2), n, return_indices=True, _random_samples=s
                        ),
                        image,
                        samples,
                    )

    def test_fractional_pools_take_numbers_for_a_larger_batch(self) -> None:
        torch.manual_seed(7)
        pools = (nn.functional.fractional_max_pool2d, nn.functional.fractional_max_pool3d)
        for dims, pool in zip((2, 3), pools):
            samples = torch.rand(3, 4, dims)
            for shape in ((2, 4), (4,)):
                with self.subTest(dims=dims, shape=shape):
                    self.same(
                        lambda x, s, pool=pool: pool(x, 2, 3, _random_samples=s),
                        torch.randn(*shape, *[7] * dims),
                        samples,
                    )
            image = torch.randn(2, 3, *[7] * dims, device="ocl")  # of other channels
            with self.assertRaises(RuntimeError):
                pool(image, 2, 3, _random_samples=samples.to("ocl"))

    def test_resampled_bytes_are_rounded_once(self) -> None:
        # The CPU truncates some, so float64 judges; weights in float move a sum of at most 255 by
        # less than 0.001, which decides where it is that near to a half.
        torch.manual_seed(10)
        for name in ("bilinear", "bicubic"):
            for smooth in (False, True):
                for size in ((9, 70), (40, 12)):
                    for layout in (torch.contiguous_format, torch.channels_last):
                        with self.subTest(name=name, smooth=smooth, size=size, layout=layout):
                            images = torch.randint(0, 256, (2, 3, 17, 33), dtype=torch.uint8)
                            images = images.contiguous(memory_format=layout)
                            resize = {"size": size, "mode": name, "antialias": smooth}
                            got = nn.functional.interpolate(images.to("ocl"), **resize).cpu()
                            want = nn.functional.interpolate(images.double(), **resize)
                            self.assertEqual(got.dtype, torch.uint8)
                            error = (got - want.clamp(0, 255)).abs().max().item()
                            self.assertLessEqual(error, 0.501)

    def test_averages_of_16_bit_volumes_are_summed_in_float(self) -> None:
        # Sums of 512 elements near 300 are beyond float16, and 343 is no bfloat16. Averages, whose
        # elements are positive, and gradients are rounded once: half an ulp, and float's own error.
        torch.manual_seed(9)
        pools = (
            (torch.nn.AvgPool3d(8), 8),
            (torch.nn.AvgPool3d(7, 1, 3), 8),
            (torch.nn.AdaptiveAvgPool3d((3, 2, 5)), 8),
        )
        for dtype in (torch.float16, torch.bfloat16):
            for pool, size in pools:
                with self.subTest(dtype=dtype, pool=pool):
                    volume = (300 + 100 * torch.rand(2, 3, size, size, size)).to(dtype)
                    own = volume.to("ocl").requires_grad_()
                    exact = volume.double().requires_grad_()
                    got, want = pool(own), pool(exact)
                    ramp = torch.linspace(0.5, 1.5, want.numel()).reshape(want.shape).to(dtype)
                    got.backward(ramp.to("ocl"))
                    want.backward(ramp.double())
                    bound = 0.51 * torch.finfo(dtype).eps
                    for a, b in ((got, want), (own.grad, exact.grad)):
                        error = (a.detach().cpu().double() - b.detach()).abs() / b.detach()
                        self.assertLessEqual(error.max().item(), bound)

    def test_multilabel_margin_loss_of_what_is_no_number(self) -> None:
        torch.manual_seed(8)
        rows = torch.randn(4, 6)
        rows[0, 1], rows[2, 2], rows[3, 2] = float("nan"), float("inf"), float("nan")
        listed = torch.tensor(
            [[0, 3, -1, 5, 5, 5], [-1, 0, 1, 2, 3, 4], [5, 4, 3, 2, 1, 0], [2, 2, 2, -1, -1, -1]]
        )
        for reduction in ("none", "mean", "sum"):
            with self.subTest(reduction=reduction):
                self.same(
                    lambda x, y, r=reduction: nn.functional.multilabel_margin_loss(
                        x, y, reduction=r
                    ),
                    rows,
                    listed,
                )

    def test_mode(self) -> None:
        # Where NaN comes before numbers that occur once, ATen's own result depends on their order.
        nan = float("nan")
        self.same(
            lambda x: x.mode()[0],
            torch.tensor([[nan, 1, nan, 2, 2], [1, nan, nan, nan, 2], [nan] * 5]),
        )
        for rows in (
            torch.tensor([[0.0, -0.0, 0.0, 1, 1], [1, 2, 3, 4, 5]]),
            torch.randint(0, 4, (3, 50, 5)).bfloat16(),
            torch.tensor([[True, False, False]]),
        ):
            self.same(lambda x: x.mode(-1)[0], rows)
            self.same(lambda x: x.mode(0, keepdim=True)[0], rows)
        self.same(lambda x: x.mode(), torch.tensor([[1, 2, 3, 2, 2], [5, 1, 5, 1, 0]]))
        with self.assertRaisesRegex(IndexError, "non-zero size"):
            torch.randn(3, 0, device="ocl").mode()

    def test_histograms(self) -> None:
        torch.manual_seed(9)
        points = torch.randn(1000)
        for density, dtype in itertools.product((False, True), (torch.float32, torch.float64)):
            with self.subTest(density=density, dtype=dtype):
                x = points.to(dtype)
                self.same(
                    lambda x, d=density: torch.histogramdd(x.view(-1, 8), [2] * 8, density=d), x
                )
                self.same(lambda x, d=density: torch.histogram(x, 9, weight=x.abs(), density=d), x)
                self.same(lambda x, d=density: torch.histogram(x[:0], 4, density=d), x)
                self.same(
                    lambda x, d=density: torch.histogram(
                        x.view(10, 10, 10), 9, weight=x.abs().view(10, 10, 10), density=d
                    ),
                    x,
                )
                self.same(
                    lambda x, d=density: torch.histogramdd(
                        x.view(5, 50, 4), [2] * 4, weight=x.abs()[:250].view(5, 50), density=d
                    ),
                    x,
                )
                far = torch.cat([x, torch.tensor([float("nan"), float("inf")], dtype=dtype)])
                self.same(
                    lambda x, d=density: torch.histogram(x, 4, range=(-1.0, 1.0), density=d), far
                )

    def test_weights_of_histograms_are_one_a_point(self) -> None:
        for device in ("cpu", "ocl"):
            x = torch.rand(4, 3, 2, device=device)
            with self.subTest(device=device):
                flat = torch.histogram(x, 3, weight=torch.full((24,), 2.0, device=device))
                self.assertEqual(flat.hist.sum().item(), 48)
                with self.assertRaisesRegex(RuntimeError, "shape"):
                    torch.histogram(x, 3, weight=torch.ones(23, device=device))
                with self.assertRaisesRegex(RuntimeError, "shape"):
                    torch.histogramdd(x, [3, 3], weight=torch.ones(12, device=device))

    def test_matrix_exp_of_different_norms(self) -> None:
        torch.manual_seed(10)
        matrices = torch.randn(4, 6, 6, dtype=torch.float64) * torch.tensor(
            [0.01, 1, 3, 9]
        ).double().view(-1, 1, 1)
        self.same(torch.matrix_exp, matrices)
        self.same(lambda x: torch.matrix_exp(x.view(2, 2, 6, 6).mT), matrices)
        # Each squaring doubles the relative error, so float32 is compared at small norms.
        self.same(torch.matrix_exp, torch.complex(matrices, matrices.mT).to(torch.complex64) / 9)
        matrices[1, 2, 3] = float("nan")
        self.same(lambda x: torch.matrix_exp(x)[[0, 2, 3]], matrices)

    def test_frexp(self) -> None:
        numbers = [
            0.0,
            -0.0,
            3.7,
            -0.5,
            float("inf"),
            float("nan"),
            1e-40,
            -1e-45,
            2.0**-126,
            6e4,
            2.0**-24,
        ]
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            self.same(torch.frexp, torch.tensor(numbers, dtype=dtype))

    def test_ctc_loss_of_different_lengths(self) -> None:
        torch.manual_seed(5)
        probs = torch.randn(12, 4, 7).log_softmax(2)
        inputs, lengths = (
            torch.tensor([12, 7, 3, 0]),
            torch.tensor([5, 0, 4, 2]),
        )  # the third has no path
        targets = torch.randint(1, 7, (4, 5))
        flat = torch.cat([row[:n] for row, n in zip(targets, lengths, strict=True)])
        for labels, forgiving in itertools.product((targets, flat), (False, True)):
            with self.subTest(labels=labels.dim(), zero_infinity=forgiving):
                found = []
                for device in ("cpu", "ocl"):
                    x = probs.to(device).requires_grad_()
                    loss = nn.functional.ctc_loss(
                        x,
                        labels.to(device),
                        inputs,
                        lengths,
                        reduction="none",
                        zero_infinity=forgiving,
                    )
                    gradient = torch.autograd.grad(loss, x, torch.arange(1.0, 5, device=device))[0]
                    found.append((loss.detach().cpu(), gradient.cpu()))
                torch.testing.assert_close(found[1], found[0], equal_nan=True)


if __name__ == "__main__":
    unittest.main()
