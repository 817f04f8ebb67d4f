"""Operators that need nothing of the host while they run: a graph records them, and its replays
have the CPU's results for other inputs; gradients, too."""

from __future__ import annotations

import unittest
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle

nn = torch.nn.functional
Function = Callable[..., torch.Tensor]


def pads(mode: str) -> dict[str, tuple[Function, torch.Tensor]]:
    line, plane = torch.randn(2, 3, 7), torch.randn(2, 3, 7, 6)
    volume = torch.randn(2, 3, 5, 6, 7)
    found = {
        f"{mode} 1d": (lambda x: nn.pad(x, (2, 3), mode), line),
        f"{mode} 1d, one end": (lambda x: nn.pad(x, (0, 4), mode), line),
        f"{mode} 1d, cut off": (lambda x: nn.pad(x, (-2, 3), mode), line),
        f"{mode} 2d": (lambda x: nn.pad(x, (1, 2, 3, 4), mode), plane),
        f"{mode} 2d, cut off": (lambda x: nn.pad(x, (-1, -2, 3, -4), mode), plane),
        f"{mode} 2d, channels_last": (
            lambda x: nn.pad(x, (1, 2, 3, 0), mode),
            plane.contiguous(memory_format=torch.channels_last),
        ),
        f"{mode} 2d of one sample": (lambda x: nn.pad(x, (5, 5, 6, 6), mode), plane[0]),
        f"{mode} 3d": (lambda x: nn.pad(x, (1, 2, 3, 4, 0, 2), mode), volume),
    }
    if mode == "replicate":
        found[f"{mode} of one element"] = (lambda x: nn.pad(x, (3, 2), mode), line[..., :1])
        found[f"{mode} far"] = (lambda x: nn.pad(x, (30, 20), mode), line)
    return found


def windows() -> dict[str, tuple[Function, torch.Tensor]]:
    plane, volume = torch.randn(2, 3, 9, 8), torch.randn(2, 3, 7, 8, 9)
    columns = torch.randn(2, 3 * 6, 7 * 4)
    return {
        "unfold": (lambda x: nn.unfold(x, 3), plane),
        "unfold, all": (lambda x: nn.unfold(x, (2, 3), (2, 1), (1, 2), (1, 3)), plane),
        "unfold of one element": (lambda x: nn.unfold(x, 1), plane),
        "unfold of one sample": (lambda x: nn.unfold(x, 2, stride=2), plane[0]),
        "fold": (lambda x: nn.fold(x, (8, 6), (2, 3)), columns),
        "fold, all": (lambda x: nn.fold(x, (14, 10), (2, 3), 2, (1, 2), (2, 3)), columns),
        "avg_pool3d": (lambda x: nn.avg_pool3d(x, 3, 2, 1), volume),
        "avg_pool3d of one sample": (lambda x: nn.avg_pool3d(x, (2, 3, 4), 2, 1), volume[0]),
        "avg_pool3d, ceil": (lambda x: nn.avg_pool3d(x, 3, 2, 1, True), volume),
        "avg_pool3d, without padding": (lambda x: nn.avg_pool3d(x, 3, 2, 1, True, False), volume),
        "avg_pool3d, divisor": (lambda x: nn.avg_pool3d(x, 3, 2, 1, True, True, 5), volume),
        "adaptive_max_pool1d": (lambda x: nn.adaptive_max_pool1d(x, 3), plane[0]),
        "adaptive_max_pool2d": (lambda x: nn.adaptive_max_pool2d(x, (4, 3)), plane),
        "adaptive_max_pool2d, more": (lambda x: nn.adaptive_max_pool2d(x, (12, 8)), plane),
        "adaptive_max_pool3d": (lambda x: nn.adaptive_max_pool3d(x, (3, 5, 9)), volume),
        "adaptive_max_pool3d of one": (lambda x: nn.adaptive_max_pool3d(x, 1), volume[0]),
        "adaptive_avg_pool3d": (lambda x: nn.adaptive_avg_pool3d(x, (3, 5, 2)), volume),
        "interpolate": (lambda x: nn.interpolate(x, scale_factor=1.5, mode="bicubic"), plane),
    }


def transforms() -> dict[str, tuple[Function, torch.Tensor]]:
    windows = {device: torch.hann_window(16).to(device) for device in ("cpu", "ocl")}

    def there(x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 16, 4, window=windows[x.device.type], return_complex=True)

    def back(x: torch.Tensor) -> torch.Tensor:
        return torch.istft(there(x) * 2, 16, 4, window=windows[x.device.type])

    signal = torch.randn(3, 100)
    return {"stft": (lambda x: torch.view_as_real(there(x)), signal), "istft": (back, signal)}


class Recorded(InGpuStyle, unittest.TestCase):
    OPTIMISED = False

    def setUp(self) -> None:
        torch.manual_seed(5)

    def near(self, got: torch.Tensor, want: torch.Tensor) -> None:
        """Sums of up to fifty numbers in another order."""
        torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=1e-5, atol=1e-5)

    def check(self, function: Function, x: torch.Tensor, strides: bool = True) -> None:
        weight = torch.linspace(0.5, 1.5, function(x).numel()).view(function(x).shape)
        here, factor = x.to("ocl").requires_grad_(), weight.to("ocl")
        function(here)  # builds programs

        def step() -> tuple[torch.Tensor, torch.Tensor]:
            out = function(here)
            return out, torch.autograd.grad(out, here, factor)[0]

        step()
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            out, grad = step()
        for again in (x, torch.randn_like(x)):
            leaf = again.clone().requires_grad_()
            want = function(leaf)
            wanted = torch.autograd.grad(want, leaf, weight)[0]
            with torch.no_grad():
                here.copy_(again)
            graph.replay()
            torch.ocl.synchronize()
            self.near(out, want)
            self.near(grad, wanted)
            if strides:
                self.assertEqual(out.stride(), want.stride())

    def test_pads(self) -> None:
        for mode in ("reflect", "replicate"):
            for name, (function, x) in pads(mode).items():
                with self.subTest(name):
                    self.check(function, x)

    def test_windows(self) -> None:
        for name, (function, x) in windows().items():
            with self.subTest(name):
                self.check(function, x)

    def test_other_types(self) -> None:
        """Moved elements are the same bits; averages of integers are cut off."""
        for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
            x = torch.randn(2, 3, 6, 7).to(dtype)
            for function in (
                lambda x: nn.pad(x, (2, 1, 3, 2), "reflect"),
                lambda x: nn.pad(x, (2, 1, 3, 2), "replicate"),
                lambda x: nn.unfold(x, (2, 3), padding=1) if x.is_floating_point() else x,
            ):
                with self.subTest(dtype=dtype):
                    self.assertTrue(torch.equal(function(x.to("ocl")).cpu(), function(x)))
        numbers = torch.randint(-90, 90, (2, 3, 5, 6, 7))
        for options in ((2,), (3, 2, 1), (3, 2, 1, True, False), (3, 2, 1, True, True, 4)):
            with self.subTest(options=options):
                got = nn.avg_pool3d(numbers.to("ocl"), *options).cpu()
                self.assertTrue(torch.equal(got, nn.avg_pool3d(numbers, *options)))

    def test_maxima_that_are_equal(self) -> None:
        """Indices: the first of equal numbers, the last NaN, as on the CPU."""
        x = torch.randint(0, 3, (2, 3, 5, 7, 9)).float()
        x[0, 1, 2, 3:5, 1:4] = torch.nan
        x[1, 2, 1:3, 2, 5] = torch.nan
        pairs = (
            (nn.adaptive_max_pool3d, (3, 4, 5), x),
            (nn.adaptive_max_pool2d, (4, 5), x[0]),
            (nn.adaptive_max_pool2d, (7, 3), x[:, 0]),
        )
        for function, size, given in pairs:
            want = function(given, size, return_indices=True)
            got = function(given.to("ocl"), size, return_indices=True)
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a.cpu(), b, rtol=0, atol=0, equal_nan=True)

    def test_transforms(self) -> None:
        """istft asks the host whether its windows cover the signal, as it does on CUDA."""
        stft, signal = transforms()["stft"]
        self.check(stft, signal, strides=False)
        istft, signal = transforms()["istft"]
        self.near(istft(signal.to("ocl")), istft(signal))

    def test_places(self) -> None:
        """nonzero_static and the indices of triangles."""
        for shape in ((40,), (5, 6), (3, 4, 5), (0, 4)):
            mask = torch.rand(shape) < 0.3
            for size in (0, 1, 7, 100):
                want = torch.nonzero_static(mask, size=size, fill_value=-9)
                got = torch.nonzero_static(mask.to("ocl"), size=size, fill_value=-9)
                self.assertTrue(torch.equal(got.cpu(), want))
        numbers = torch.tensor([0.0, torch.nan, -0.0, 2.0])
        got = torch.nonzero_static(numbers.to("ocl"), size=3)
        self.assertTrue(torch.equal(got.cpu(), torch.nonzero_static(numbers, size=3)))
        here = torch.zeros(6, 5, dtype=torch.bool, device="ocl")
        torch.nonzero_static(here, size=8)
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            found = torch.nonzero_static(here, size=8)
        for _ in range(2):
            mask = torch.rand(6, 5) < 0.3
            here.copy_(mask)
            graph.replay()
            self.assertTrue(torch.equal(found.cpu(), torch.nonzero_static(mask, size=8)))

    def test_triangles(self) -> None:
        for make in (torch.tril_indices, torch.triu_indices):
            for rows, columns in ((5, 7), (7, 5), (1, 1), (0, 3), (3, 0), (4, 4)):
                for offset in (-9, -2, -1, 0, 1, 2, 9):
                    got = make(rows, columns, offset, device="ocl").cpu()
                    self.assertTrue(torch.equal(got, make(rows, columns, offset)))
            with torch.ocl.graph(torch.ocl.OCLGraph()):
                make(5, 7, 1, device="ocl")

    def test_masked_scatter(self) -> None:
        """As multi-modal models put images among tokens: the host does not count the mask."""
        x, mask = torch.randn(6, 8), torch.rand(6, 8) < 0.4
        source = torch.randn(int(mask.sum()) + 2)
        want = x.masked_scatter(mask, source)
        here = [t.to("ocl") for t in (x, mask, source)]
        here[0].masked_scatter(here[1], here[2])
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            got = here[0].masked_scatter(here[1], here[2])
        graph.replay()
        self.assertTrue(torch.equal(got.cpu(), want))
        here[0].masked_scatter(here[1], here[2][:3])
        with self.assertRaisesRegex(IndexError, r"index \d+ is out of range"):
            torch.ocl.synchronize()


if __name__ == "__main__":
    unittest.main()
