"""torchvision's operators on ocl, forward and backward, against its CPU kernels, in both styles."""

import pathlib
import subprocess
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch_ocl  # noqa: F401
from gpu_style import IS_GPU_STYLE, InGpuStyle, of_style

ORACLE = pathlib.Path(__file__).resolve().parents[3] / "tests/oracle"
sys.path.insert(0, str(ORACLE))
import torchvision_library  # noqa: E402

VISION = torchvision_library.load()
Tensor = torch.Tensor
NUMBERS = torch.float64, torch.float32
HALVES = of_style((torch.float16, torch.bfloat16))
# Averages and sums of some dozens of products below 4 in another order; interpolated numbers keep
# the rounding of coordinates up to 30.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 3e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def setUpModule() -> None:
    if VISION is None:
        raise unittest.SkipTest("SKIPPED: torchvision is not installed; ./run test installs it")


def ops() -> Any:
    return torch.ops.torchvision


def boxes_of(count: int, room: float, dtype: torch.dtype) -> Tensor:
    corner = torch.rand(count, 2, dtype=torch.float64) * room
    return torch.cat((corner, corner + torch.rand(count, 2, dtype=torch.float64) * 10), 1).to(dtype)


def regions_of(count: int, images: int, size: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """Some reach out of the image; some have no width, or a negative one."""
    high, wide = size
    image = torch.randint(images, (count, 1)).double()
    start = torch.rand(count, 2, dtype=torch.float64) * torch.tensor([wide + 4, high + 4]) - 3
    extent = torch.rand(count, 2, dtype=torch.float64) * torch.tensor([wide, high]) - 1
    return torch.cat((image, start, start + extent), 1).to(dtype)


def strided(t: Tensor) -> Tensor:
    """The same elements with gaps between them, in another order of dimensions."""
    order = [*range(1, t.dim()), 0]
    wide = torch.empty([*(t.shape[d] for d in order), 2], dtype=t.dtype, device=t.device)
    view = wide[..., 1].permute(t.dim() - 1, *range(t.dim() - 1))
    return view.copy_(t)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)

    def assert_near(self, ours: Tensor, theirs: Tensor, tolerance: float) -> None:
        self.assertEqual(ours.device.type, "ocl")
        self.assertEqual(ours.dtype, theirs.dtype)
        if not ours.is_floating_point():
            tolerance = 0
        torch.testing.assert_close(
            ours.cpu(), theirs, rtol=tolerance, atol=tolerance, equal_nan=True
        )


class Nms(InGpuStyle, Case):
    def check(self, boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
        kept = ops().nms(boxes.to("ocl"), scores.to("ocl"), threshold)
        self.assertEqual(kept.device.type, "ocl")
        self.assertEqual(kept.tolist(), ops().nms(boxes, scores, threshold).tolist())
        return kept

    def test_random_boxes(self) -> None:
        for dtype in NUMBERS:
            for count in (1, 2, 63, 64, 65, 500, 2049, 5000):
                for threshold in (0.0, 0.2, 0.7, 1.0):
                    with self.subTest(dtype=dtype, count=count, threshold=threshold):
                        boxes = boxes_of(count, 10 + count**0.5, dtype)
                        self.check(boxes, torch.rand(count, dtype=dtype), threshold)

    def test_few_are_kept_and_all_are(self) -> None:
        scores = torch.rand(4500)
        self.assertLess(len(self.check(boxes_of(4500, 3.0, torch.float32), scores, 0.01)), 50)
        apart = torch.arange(4500.0)[:, None] * 20 + torch.tensor([0.0, 0.0, 5.0, 5.0])
        self.assertEqual(len(self.check(apart, scores, 0.5)), 4500)

    def test_ties_keep_their_order(self) -> None:
        boxes = boxes_of(1000, 40, torch.float32).round()
        self.check(boxes, torch.randint(4, (1000,)).float(), 0.3)
        self.check(boxes, torch.zeros(1000), 0.5)

    def test_shares_at_the_threshold(self) -> None:
        # Unions and common areas are small whole numbers: shares of exactly 1/2, 1/3, 1/10.
        boxes = torch.randint(6, (600, 4)).float()
        boxes[:, 2:] += boxes[:, :2]
        for dtype in NUMBERS:
            for threshold in (1 / 2, 1 / 3, 0.1, 2 / 3, 0.25):
                self.check(boxes.to(dtype), torch.rand(600, dtype=dtype), threshold)

    def test_numbers_that_are_not_finite(self) -> None:
        boxes = boxes_of(300, 20, torch.float32)
        boxes[::7, 1] = torch.nan
        boxes[1::7, 2] = torch.inf
        boxes[2::7, 0] = -torch.inf
        boxes[3::7, 2:] = boxes[3::7, :2]
        scores = torch.rand(300)
        scores[::11] = torch.nan
        scores[1::11] = torch.inf
        scores[2::11] = -torch.inf
        for threshold in (0.0, 0.3, torch.nan):
            self.check(boxes, scores, threshold)

    def test_strides(self) -> None:
        boxes, scores = boxes_of(200, 20, torch.float32), torch.rand(200)
        kept = ops().nms(strided(boxes.to("ocl")), strided(scores.to("ocl")), 0.3)
        self.assertEqual(kept.tolist(), ops().nms(boxes, scores, 0.3).tolist())

    def test_halves_compute_in_float32(self) -> None:
        for dtype in HALVES:
            boxes, scores = boxes_of(400, 30, dtype), torch.rand(400).to(dtype)
            kept = ops().nms(boxes.to("ocl"), scores.to("ocl"), 0.3)
            self.assertEqual(kept.tolist(), ops().nms(boxes.float(), scores.float(), 0.3).tolist())

    def test_no_boxes(self) -> None:
        kept = self.check(torch.empty(0, 4), torch.empty(0), 0.5)
        self.assertEqual((kept.shape, kept.dtype), (torch.Size([0]), torch.int64))

    def test_wrong_arguments(self) -> None:
        boxes, scores = torch.rand(3, 4, device="ocl"), torch.rand(3, device="ocl")
        for wrong in ((boxes[0], scores), (boxes[:, :3], scores), (boxes, scores[:2])):
            with self.assertRaisesRegex(RuntimeError, "nms.out: (boxes|scores) "):
                ops().nms(*wrong, 0.5)
        with self.assertRaises(RuntimeError):
            ops().nms(boxes.int(), scores.int(), 0.5)

    def test_batched(self) -> None:
        boxes, scores = boxes_of(300, 20, torch.float32), torch.rand(300)
        groups = torch.randint(5, (300,))
        kept = VISION.ops.batched_nms(boxes.to("ocl"), scores.to("ocl"), groups.to("ocl"), 0.3)
        self.assertEqual(kept.tolist(), VISION.ops.batched_nms(boxes, scores, groups, 0.3).tolist())


class Regions(InGpuStyle, Case):
    """Each operator with its ways to sample."""

    OPERATORS: dict[str, list[tuple]] = {
        "roi_align": [(ratio, aligned) for ratio in (-1, 0, 1, 3) for aligned in (False, True)],
        "roi_pool": [()],
        "ps_roi_align": [(-1,), (1,), (2,)],
        "ps_roi_pool": [()],
    }

    def cases(self) -> Iterator[tuple[str, tuple, tuple[int, int], int, float]]:
        for name, options in self.OPERATORS.items():
            for more in options:
                for pooled, scale in (((1, 1), 1.0), ((3, 2), 0.5), ((7, 7), 0.25)):
                    per_bin = pooled[0] * pooled[1] if name.startswith("ps_") else 1
                    yield name, more, pooled, 3 * per_bin, scale

    def run_operator(
        self, name: str, x: Tensor, rois: Tensor, arguments: tuple, gradient: Tensor
    ) -> list[Tensor]:
        """Results, and the gradient of the images."""
        x = x.detach().requires_grad_()
        outs = getattr(ops(), name)(x, rois, *arguments)
        outs = [outs] if isinstance(outs, Tensor) else list(outs)
        outs[0].backward(gradient)
        return [*(o.detach() for o in outs), x.grad]

    def compare(self, change: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
        wide = dtype if dtype in NUMBERS else torch.float32
        for name, more, pooled, channels, scale in self.cases():
            with self.subTest(name=name, more=more, pooled=pooled, dtype=dtype):
                x = torch.randn(2, channels, 11, 9).to(dtype)
                rois = regions_of(6, 2, (11, 9), dtype)
                rois[:, 1:] /= scale
                outputs = 3
                gradient = torch.randn(6, outputs, *pooled).to(dtype)
                arguments = (scale, *pooled, *more)
                theirs = self.run_operator(
                    name, x.to(wide), rois.to(wide), arguments, gradient.to(wide)
                )
                ours = self.run_operator(
                    name,
                    change(x.to("ocl")),
                    change(rois.to("ocl")),
                    arguments,
                    change(gradient.to("ocl")),
                )
                for a, b in zip(ours, theirs, strict=True):
                    if a.is_floating_point():
                        b = b.to(dtype)
                    self.assert_near(a, b, TOLERANCE[dtype])

    def test_numbers(self) -> None:
        for dtype in NUMBERS:
            self.compare(lambda t: t, dtype)

    def test_halves(self) -> None:
        for dtype in HALVES:
            self.compare(lambda t: t, dtype)

    def test_strides(self) -> None:
        self.compare(strided, torch.float32)

    def test_nothing_to_do(self) -> None:
        for name, more, pooled, channels, scale in self.cases():
            with self.subTest(name=name, more=more, pooled=pooled):
                for images, regions in ((2, 0), (0, 0)):
                    x = torch.randn(images, channels, 5, 4)
                    rois = regions_of(regions, max(images, 1), (5, 4), torch.float32)
                    gradient = torch.randn(regions, 3, *pooled)
                    arguments = (scale, *pooled, *more)
                    theirs = self.run_operator(name, x, rois, arguments, gradient)
                    ours = self.run_operator(
                        name, x.to("ocl"), rois.to("ocl"), arguments, gradient.to("ocl")
                    )
                    for a, b in zip(ours, theirs, strict=True):
                        self.assert_near(a, b, 0)

    def test_images_with_nan(self) -> None:
        x = torch.randn(1, 4, 8, 8)
        x[0, :, 2, 3] = torch.nan
        x[0, :, 5, 5] = torch.inf
        rois = regions_of(5, 1, (8, 8), torch.float32)
        for name in self.OPERATORS:
            arguments = (1.0, 2, 2, *self.OPERATORS[name][0])
            ours = getattr(ops(), name)(x.to("ocl"), rois.to("ocl"), *arguments)
            theirs = getattr(ops(), name)(x, rois, *arguments)
            if isinstance(ours, Tensor):
                ours, theirs = [ours], [theirs]
            for a, b in zip(ours, theirs, strict=True):
                self.assert_near(a, b, TOLERANCE[torch.float32])

    def test_many_regions_have_the_same_bits(self) -> None:
        x, rois = torch.randn(2, 32, 40, 40), regions_of(200, 2, (40, 40), torch.float32)
        for name in ("roi_align", "roi_pool"):
            arguments = (1.0, 7, 7, *self.OPERATORS[name][0])
            gradient = torch.randn(200, 32, 7, 7)
            runs = [
                self.run_operator(name, x.to("ocl"), rois.to("ocl"), arguments, gradient.to("ocl"))
                for _ in range(2)
            ]
            theirs = self.run_operator(name, x, rois, arguments, gradient)
            for a, b, c in zip(*runs, theirs, strict=True):
                self.assertTrue(torch.equal(a, b))
                # Each element adds up some hundred numbers.
                self.assert_near(a, c, 3e-4)

    def test_gradcheck(self) -> None:
        # torchvision's ps_roi_pool leaves out the last row and column on the way there alone.
        rois = torch.tensor([[0, 0, 0, 3, 3.5], [0, 1, 1.2, 3, 4]]).double().to("ocl")
        for name in self.OPERATORS:
            channels = 4 if name.startswith("ps_") else 1
            x = torch.randn(1, channels, 6, 5, dtype=torch.float64, device="ocl")
            x.requires_grad_()

            def pooled(t: Tensor, name: str = name) -> Tensor:
                out = getattr(ops(), name)(t, rois, 1.0, 2, 2, *self.OPERATORS[name][0])
                return out if isinstance(out, Tensor) else out[0]

            with self.subTest(name):
                self.assertTrue(torch.autograd.gradcheck(pooled, (x,)))

    def test_image_outside_of_the_batch(self) -> None:
        rois = torch.tensor([[3.0, 0, 0, 2, 2]], device="ocl")
        with self.assertRaisesRegex(IndexError, "roi_align.*3"):
            ops().roi_align(torch.rand(2, 1, 4, 4, device="ocl"), rois, 1.0, 2, 2, 1, False).cpu()

    def test_wrong_arguments(self) -> None:
        x, rois = torch.rand(1, 3, 4, 4, device="ocl"), torch.rand(2, 5, device="ocl")
        with self.assertRaisesRegex(RuntimeError, r"Tensor\[K, 5\]"):
            ops().roi_align(x, rois[:, :4], 1.0, 2, 2, 1, False)
        with self.assertRaisesRegex(RuntimeError, "multiple of pooling height"):
            ops().ps_roi_pool(x, rois, 1.0, 2, 2)
        with self.assertRaises(RuntimeError):
            ops().roi_pool(x, rois.double(), 1.0, 2, 2)


class Deform(InGpuStyle, Case):
    # (groups, groups of offsets, channels, outputs, window, stride, padding, dilation)
    GEOMETRIES = (
        (1, 1, 3, 4, (3, 3), (1, 1), (1, 1), (1, 1)),
        (2, 1, 4, 6, (2, 3), (2, 1), (0, 2), (1, 2)),
        (1, 2, 6, 2, (1, 1), (1, 1), (0, 0), (1, 1)),
        (3, 2, 6, 3, (3, 2), (1, 2), (2, 1), (2, 1)),
    )

    def tensors(self, geometry: tuple, batch: int, masked: bool) -> tuple[list[Tensor], tuple]:
        groups, shared, channels, outputs, window, stride, padding, dilation = geometry
        size = (9, 8)
        out = [
            (s + 2 * p - d * (w - 1) - 1) // t + 1
            for s, w, t, p, d in zip(size, window, stride, padding, dilation, strict=True)
        ]
        taps = shared * window[0] * window[1]
        tensors = [
            torch.randn(batch, channels, *size),
            torch.randn(outputs, channels // groups, *window),
            torch.randn(batch, 2 * taps, *out) * 2,
            torch.rand(batch, taps, *out) if masked else torch.zeros(batch, 1),
            torch.randn(outputs),
        ]
        return tensors, (*stride, *padding, *dilation, groups, shared, masked)

    def run_operator(self, tensors: list[Tensor], numbers: tuple) -> list[Tensor]:
        leaves = [t.detach().requires_grad_() for t in tensors]
        out = ops().deform_conv2d(*leaves, *numbers)
        weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape)
        out.backward(weights.to(out.device, out.dtype))
        return [out.detach(), *(t.grad for t in leaves)]

    def compare(self, change: Callable[[Tensor], Tensor], dtype: torch.dtype, k: float) -> None:
        wide = dtype if dtype in NUMBERS else torch.float32
        for geometry in self.GEOMETRIES:
            for masked in (False, True):
                tensors, numbers = self.tensors(geometry, 3, masked)
                tensors = [t.to(dtype) for t in tensors]
                with self.subTest(geometry=geometry, masked=masked, dtype=dtype):
                    theirs = self.run_operator([t.to(wide) for t in tensors], numbers)
                    ours = self.run_operator([change(t.to("ocl")) for t in tensors], numbers)
                    for a, b in zip(ours, theirs, strict=True):
                        # Sums of some dozens of products, up to a few hundred for weights.
                        scale = max(1.0, b.abs().max().item())
                        self.assert_near(a, b.to(dtype), k * TOLERANCE[dtype] * scale)

    def test_numbers(self) -> None:
        for dtype in NUMBERS:
            self.compare(lambda t: t, dtype, 1)

    def test_halves(self) -> None:
        for dtype in HALVES:
            self.compare(lambda t: t, dtype, 2)

    def test_strides(self) -> None:
        self.compare(strided, torch.float32, 1)

    def test_no_images(self) -> None:
        tensors, numbers = self.tensors(self.GEOMETRIES[0], 0, True)
        theirs = self.run_operator(tensors, numbers)
        for a, b in zip(self.run_operator([t.to("ocl") for t in tensors], numbers), theirs):
            self.assert_near(a, b, 0)

    def test_offsets_that_are_not_finite_read_nothing(self) -> None:
        tensors, numbers = self.tensors(self.GEOMETRIES[0], 1, False)
        far, bad = tensors[2].clone(), tensors[2].clone()
        far[0, ::5], bad[0, ::5] = 1e6, torch.inf
        theirs = ops().deform_conv2d(*tensors[:2], far, *tensors[3:], *numbers)
        tensors[2] = bad
        ours = ops().deform_conv2d(*(t.to("ocl") for t in tensors), *numbers)
        finite = ~ours.cpu().isnan()
        self.assertTrue(torch.allclose(ours.cpu()[finite], theirs[finite], atol=1e-4))

    def test_gradcheck(self) -> None:
        tensors, numbers = self.tensors((1, 1, 2, 2, (2, 2), (2, 2), (0, 0), (1, 1)), 1, True)
        leaves = [t.double().to("ocl").requires_grad_() for t in tensors]
        self.assertTrue(
            torch.autograd.gradcheck(lambda *t: ops().deform_conv2d(*t, *numbers), leaves)
        )

    def test_wrong_arguments(self) -> None:
        tensors, numbers = self.tensors(self.GEOMETRIES[0], 1, True)
        tensors = [t.to("ocl") for t in tensors]
        tensors[2] = tensors[2][:, 1:]
        with self.assertRaisesRegex(RuntimeError, "offset must have shape"):
            ops().deform_conv2d(*tensors, *numbers)


@unittest.skipIf(IS_GPU_STYLE, "does not depend on the style")
class Registration(Case):
    SCRIPT = """
import sys
sys.path.insert(0, {oracle!r})
import torch
def vision():
    import torchvision_library
    torchvision_library.load()
def ocl():
    import torch_ocl
for load in {order}: load()
boxes = torch.tensor([[0., 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]], device="ocl")
scores = torch.tensor([.5, .6, .7], device="ocl")
assert torch.ops.torchvision.nms(boxes, scores, .5).tolist() == [2, 1]
"""

    def test_either_order(self) -> None:
        for order in ("(vision, ocl)", "(ocl, vision)"):
            code = self.SCRIPT.format(oracle=str(ORACLE), order=order)
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, f"{order}: {run.stderr}")

    def test_a_library_that_is_not_imported_has_no_operators(self) -> None:
        code = "import torch, torch_ocl\ntorch.ops.torchvision.nms"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("has no attribute 'nms'", run.stderr)

    def test_autocast_runs_in_float32(self) -> None:
        x = torch.rand(1, 4, 8, 8, device="ocl").half()
        rois = torch.tensor([[0, 1.0, 1, 6, 6]], device="ocl")
        boxes = boxes_of(50, 10, torch.float32).to("ocl")
        scores = torch.rand(50, device="ocl")
        with torch.autocast("ocl", torch.float16):
            for name, options in Regions.OPERATORS.items():
                out = getattr(ops(), name)(x, rois, 1.0, 2, 2, *options[0])
                out = out if isinstance(out, Tensor) else out[0]
                self.assertEqual(out.dtype, torch.float16)
            kept = ops().nms(boxes.half(), scores, 0.5)
        theirs = ops().nms(boxes.half().float().cpu(), scores.cpu(), 0.5)
        self.assertEqual(kept.tolist(), theirs.tolist())

    def test_fake_tensors(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            x, rois = torch.empty(2, 3, 8, 8, device="ocl"), torch.empty(4, 5, device="ocl")
            out = ops().roi_align(x, rois, 1.0, 2, 3, 1, False)
        self.assertEqual((out.shape, out.device.type), (torch.Size([4, 3, 2, 3]), "ocl"))

    def test_disabled_operators_are_declined(self) -> None:
        boxes, scores = torch.rand(3, 4, device="ocl"), torch.rand(3, device="ocl")
        with torch.backends.ocl.operations_disabled("torchvision::nms"):
            with self.assertRaisesRegex(NotImplementedError, "torchvision::nms"):
                ops().nms(boxes, scores, 0.5)


if __name__ == "__main__":
    unittest.main()
