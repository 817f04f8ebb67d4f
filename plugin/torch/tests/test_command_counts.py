"""How many commands an operator enqueues at most: those that took dozens of launches must not do so
again."""

import tempfile
import unittest
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401

nn = torch.nn.functional


def commands(body: Callable[[], object]) -> int:
    """Kernels, copies and fills of one call, when its programs are there."""
    body()
    torch.ocl.synchronize()
    with (
        tempfile.NamedTemporaryFile(suffix=".json") as file,
        torch.ocl.profiler.profile(path=file.name),
    ):
        torch.ocl.profiler.reset_statistics()
        body()
        torch.ocl.synchronize()
        rows = torch.ocl.profiler.statistics()
    return sum(row["count"] for kind in ("kernels", "copies") for row in rows[kind])


def grid_sample(mode: str, backward: bool) -> Callable[[], object]:
    image = torch.randn(2, 3, 8, 8, device="ocl", requires_grad=True)
    grid = (torch.rand(2, 5, 5, 2, device="ocl") * 2 - 1).requires_grad_()
    out = nn.grid_sample(image, grid, mode, align_corners=False)
    gradient = torch.ones_like(out)
    if backward:
        return lambda: torch.autograd.grad(out, (image, grid), gradient, retain_graph=True)
    return lambda: nn.grid_sample(image, grid, mode, align_corners=False)


def ctc_loss(backward: bool) -> Callable[[], object]:
    probs = torch.randn(20, 3, 7, device="ocl").log_softmax(2).requires_grad_()
    targets = torch.randint(1, 7, (3, 5), device="ocl")

    def loss() -> torch.Tensor:
        return nn.ctc_loss(probs, targets, (20, 18, 9), (5, 2, 0), reduction="sum")

    return (lambda: torch.autograd.grad(loss(), probs)) if backward else loss


def pdist(backward: bool) -> Callable[[], object]:
    rows = torch.randn(9, 4, device="ocl", requires_grad=True)
    if not backward:
        return lambda: nn.pdist(rows)
    out = nn.pdist(rows)
    gradient = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, rows, gradient, retain_graph=True)


def pad(mode: str) -> Callable[[], object]:
    image = torch.randn(2, 3, 6, 6, device="ocl", requires_grad=True)
    out = nn.pad(image, (2, 1, 3, 2), mode)
    gradient = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, image, gradient, retain_graph=True)


def upsample(mode: str, backward: bool = False, **options: bool) -> Callable[[], object]:
    dims = 3 if mode == "trilinear" else 2
    image = torch.randn(2, 3, *[6] * dims, device="ocl", requires_grad=True)
    out = nn.interpolate(image, scale_factor=1.5, mode=mode, **options)
    gradient = torch.ones_like(out)
    if backward:
        return lambda: torch.autograd.grad(out, image, gradient, retain_graph=True)
    return lambda: nn.interpolate(image, scale_factor=1.5, mode=mode, **options)


def recurrent(kind: type[torch.nn.RNNBase], backward: bool) -> Callable[[], object]:
    """A layer of 16 steps."""
    layer = kind(7, 9).to("ocl")
    x = torch.randn(16, 3, 7, device="ocl")
    if not backward:
        return lambda: layer(x)
    out = layer(x)[0]
    gradient = torch.ones_like(out)
    weights = list(layer.parameters())
    return lambda: torch.autograd.grad(out, weights, gradient, retain_graph=True)


class CommandCounts(unittest.TestCase):
    def test_a_sum_is_one_command(self) -> None:
        # Also: what ran before the sums were reset is not counted.
        a = torch.ones(5, 5, device="ocl")
        self.assertEqual(commands(lambda: a + a), 1)

    def test_counts(self) -> None:
        numbers = torch.randn(1000, device="ocl")
        rows = torch.randn(20, 5, device="ocl")
        listed = torch.randint(-1, 5, (20, 5), device="ocl")
        volume = torch.randn(2, 3, 6, 6, 6, device="ocl")
        table = {
            "bicubic": (upsample("bicubic"), 2),  # a launch a dimension
            "bicubic backward": (upsample("bicubic", True), 2),
            "bilinear, antialiased": (upsample("bilinear", antialias=True), 2),
            "bilinear, antialiased, backward": (upsample("bilinear", True, antialias=True), 2),
            "bicubic, antialiased": (upsample("bicubic", antialias=True), 2),
            "trilinear": (upsample("trilinear"), 3),
            "trilinear backward": (upsample("trilinear", True), 3),
            "fractional_max_pool2d": (
                lambda: nn.fractional_max_pool2d(volume[0], 2, 3),
                2,
            ),  # with the numbers
            "fractional_max_pool3d": (lambda: nn.fractional_max_pool3d(volume, 2, 3), 2),
            "multilabel_margin_loss": (lambda: nn.multilabel_margin_loss(rows, listed), 2),
            "mode": (lambda: rows.mode(), 8),  # with the sort
            "histogram": (
                lambda: torch.histogram(numbers, 10, density=True),
                12,
            ),  # GPUs sort by bins
            "histogramdd": (lambda: torch.histogramdd(rows, [2] * 5, density=True), 24),
            "frexp": (lambda: numbers.frexp(), 17),
            "matrix_exp": (lambda: torch.matrix_exp(rows[:5] * 0.1), 18),
            "grid_sample": (grid_sample("bilinear", False), 1),
            "grid_sample bicubic": (grid_sample("bicubic", False), 1),
            "grid_sample backward": (
                grid_sample("bilinear", True),
                20,
            ),  # GPUs sort what points read
            "ctc_loss": (ctc_loss(False), 3),  # with the lengths' copy and the sum
            "ctc_loss backward": (ctc_loss(True), 8),
            "median": (lambda: numbers.median(), 1),
            "nanmedian": (lambda: numbers.nanmedian(), 1),
            "kthvalue": (lambda: numbers.kthvalue(3), 1),
            "pdist": (pdist(False), 1),
            "pdist backward": (pdist(True), 1),
            "reflection pad": (lambda: nn.pad(volume, (1, 2, 3, 1, 2, 0), "reflect"), 1),
            "replication pad backward": (pad("replicate"), 1),
            "nonzero_static": (lambda: torch.nonzero_static(listed, size=9), 3),
            "rms_norm": (lambda: nn.rms_norm(rows, (5,)), 1),
            # Two commands a step, and three of GRU's backward; the rest is once for all steps.
            "lstm": (recurrent(torch.nn.LSTM, False), 16 * 2 + 6),
            "lstm backward": (recurrent(torch.nn.LSTM, True), 16 * 2 + 8),
            "gru": (recurrent(torch.nn.GRU, False), 16 * 2 + 4),
            "gru backward": (recurrent(torch.nn.GRU, True), 16 * 3 + 8),
            "rnn": (recurrent(torch.nn.RNN, False), 16 * 2 + 5),
            "rnn backward": (recurrent(torch.nn.RNN, True), 16 * 2 + 8),
            "_standard_gamma": (lambda: torch._standard_gamma(numbers.abs()), 2),  # with abs
            "poisson": (lambda: torch.poisson(numbers.abs()), 2),
        }
        if hasattr(torch, "_foreach_clone"):  # new in PyTorch 2.13
            table["_foreach_clone"] = (lambda: torch._foreach_clone([rows] * 9), 1)
        for name, (body, most) in table.items():
            with self.subTest(operator=name):
                self.assertLessEqual(commands(body), most)


if __name__ == "__main__":
    unittest.main()
