"""Results on ocl have the strides of the CPU's: convolutions, pooling, normalisation, padding,
resampling and selection in every memory format, whole networks in channels_last, and training."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence

import torch
import torch_ocl  # noqa: F401  registers the device
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

F = nn.functional
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# Up to 2.13 PyTorch makes operands of group normalisation contiguous, but not on the CPU.
CONTIGUOUS_GROUP_NORMS = VERSION < (2, 14)
LAST, LAST_3D = torch.channels_last, torch.channels_last_3d


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def strides(t: Tensor) -> list[int]:
    """Those that matter: the stride of a dimension of size 1 is never used."""
    return [s if n > 1 else 0 for n, s in zip(t.shape, t.stride(), strict=True)]


def in_layouts(t: Tensor) -> dict[str, Tensor]:
    """The tensor with its elements in several orders and distances in memory."""
    order = list(range(t.dim()))[::-1]
    made = {
        "contiguous": t,
        "transposed": t.permute(order).contiguous().permute(order),
        "expanded": t[:1].expand(t.shape),
        "sliced": torch.stack([t, t], -1).flatten(-2)[..., ::2],
    }
    if t.dim() in (4, 5):
        made["channels_last"] = t.contiguous(memory_format=LAST if t.dim() == 4 else LAST_3D)
    return made


def moved(t: Tensor) -> Tensor:
    """On ocl, with the same strides: .to() alone makes expanded tensors dense."""
    count = t.untyped_storage().nbytes() // t.element_size()
    flat = t.detach().as_strided((count,), (1,), 0).to("ocl")
    return flat.as_strided(t.shape, t.stride(), t.storage_offset())


class Case(unittest.TestCase):
    def same(self, ours: Tensor, theirs: Tensor, what: object, close: float = 2e-5) -> None:
        with self.subTest(what=what):
            self.assertEqual(strides(ours), strides(theirs))
            torch.testing.assert_close(ours.cpu(), theirs, rtol=close, atol=close)

    def agree(
        self,
        call: Callable,
        *tensors: Tensor,
        grad: Sequence[int] = (0,),
        contiguous: Sequence[int] = (),
        name: object = "",
    ) -> None:
        """Results and gradients of the tensors named by `grad`, in value and strides. The gradients
        named by `contiguous` are that, whatever the CPU's are."""
        ours, theirs = [[move(t) for t in tensors] for move in (moved, torch.clone)]
        theirs = [t.detach() for t in tensors]  # clone() would make expanded ones dense
        for i in grad:
            ours[i].requires_grad_()
            theirs[i].requires_grad_()
        a, b = call(*ours), call(*theirs)
        a, b = [x if isinstance(x, tuple) else (x,) for x in (a, b)]
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            self.same(x.detach(), y.detach(), (name, "result", k))
        if not grad:
            return
        seed = torch.empty_strided(b[0].shape, b[0].stride()).copy_(numbers(*b[0].shape, seed=9))
        found = torch.autograd.grad(a[0], [ours[i] for i in grad], moved(seed))
        wanted = torch.autograd.grad(b[0], [theirs[i] for i in grad], seed)
        for i, x, y in zip(grad, found, wanted, strict=True):
            y = y.contiguous() if i in contiguous else y
            self.same(x, y, (name, "gradient", i))


class Operators(Case):
    def test_convolutions(self) -> None:
        # Maps and batches so large that the CPU does not take its fallback for small volumes, whose
        # results are always contiguous.
        for name, x, w, kwargs in (
            ("3x3", (2, 20, 9, 11), (33, 20, 3, 3), {"padding": 1}),
            ("1x1", (2, 16, 5, 7), (24, 16, 1, 1), {}),
            ("strided", (3, 17, 9, 10), (40, 17, 3, 3), {"stride": 2, "padding": 1}),
            ("dilated", (2, 16, 12, 12), (16, 16, 3, 3), {"dilation": 2}),
            ("depthwise", (2, 32, 9, 9), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
            (
                "depthwise, strided",
                (2, 40, 11, 9),
                (40, 1, 5, 5),
                {"groups": 40, "stride": (2, 1), "padding": 2},
            ),
            ("depthwise, dilated", (1, 16, 9, 9), (16, 1, 3, 2), {"groups": 16, "dilation": 2}),
            ("multiplied", (2, 32, 9, 9), (64, 1, 3, 3), {"groups": 32, "stride": 2}),
            ("grouped", (2, 32, 9, 19), (48, 16, 3, 3), {"groups": 2, "padding": (0, 2)}),
            ("three channels", (2, 3, 17, 17), (32, 3, 7, 7), {"stride": 2, "padding": 3}),
            ("wide window", (2, 4, 30, 28), (6, 4, 28, 28), {}),
            ("volume", (2, 4, 5, 6, 7), (6, 4, 3, 3, 3), {"padding": 1}),
        ):
            call = F.conv2d if len(x) == 4 else F.conv3d
            self.convolve(name, call, numbers(*x), numbers(*w, seed=1) / 9, kwargs)

    def test_transposed_convolutions(self) -> None:
        for name, x, w, kwargs in (
            ("plain", (2, 20, 7, 6), (20, 18, 3, 3), {}),
            ("strided", (2, 16, 5, 6), (16, 20, 4, 4), {"stride": 2, "padding": 1}),
            ("grouped", (2, 8, 5, 6), (8, 4, 2, 2), {"stride": 2, "groups": 2}),
            ("depthwise", (2, 24, 5, 6), (24, 1, 3, 3), {"stride": 2, "groups": 24}),
            ("volume", (2, 4, 3, 4, 3), (4, 6, 2, 2, 2), {"stride": 2}),
        ):
            call = F.conv_transpose2d if len(x) == 4 else F.conv_transpose3d
            self.convolve(name, call, numbers(*x), numbers(*w, seed=1) / 9, kwargs)

    def convolve(self, name: str, call: Callable, x: Tensor, w: Tensor, kwargs: dict) -> None:
        groups = kwargs.get("groups", 1)
        bias = numbers(w.size(0) if "transpose" not in call.__name__ else w.size(1) * groups)
        for of_x, a in in_layouts(x).items():
            for of_w in ("contiguous", "channels_last"):
                self.agree(
                    lambda x, w, b: call(x, w, b, **kwargs),
                    a,
                    in_layouts(w)[of_w],
                    bias,
                    grad=(0, 1, 2),
                    name=(name, of_x, of_w),
                )

    def test_convolutions_of_other_types(self) -> None:
        x = torch.randint(-3, 4, (2, 18, 7, 9)).to(memory_format=LAST)
        w, depth = torch.randint(-3, 4, (20, 18, 3, 3)), torch.randint(-3, 4, (18, 1, 3, 3))
        for dtype in (torch.float64, torch.int64, torch.float16, torch.bfloat16, torch.complex64):
            a, w, depth = x.to(dtype), w.to(dtype), depth.to(dtype)
            self.agree(lambda x, w: F.conv2d(x, w), a, w, grad=(), name=dtype)
            self.agree(lambda x, w: F.conv2d(x, w, groups=18), a, depth, grad=(), name=dtype)

    def test_convolution_in_one_dimension_is_contiguous(self) -> None:
        x = numbers(2, 9, 6).transpose(1, 2)
        self.agree(lambda x, w: F.conv1d(x, w), x, numbers(5, 6, 3), grad=(0, 1))

    def test_gradients_without_strides(self) -> None:
        """sum() hands back one number, expanded: no step leads from each position to the next."""
        for dims in (1, 2, 3):
            for size in (1, 3):
                x, w = torch.randn(2, 4, *[5] * dims), torch.randn(6, 4, *[size] * dims)
                convolution = getattr(torch.nn.functional, f"conv{dims}d")
                grads = []
                for device in ("cpu", "ocl"):
                    leaves = [t.to(device).requires_grad_() for t in (x, w)]
                    grads.append(torch.autograd.grad(convolution(*leaves).sum(), leaves))
                for ours, theirs in zip(grads[1], grads[0]):
                    with self.subTest(dims=dims, size=size):
                        torch.testing.assert_close(ours.cpu(), theirs, rtol=2e-5, atol=2e-5)

    def test_convolution_of_no_images(self) -> None:
        x = torch.empty(0, 4, 6, 6).to(memory_format=LAST)
        self.assertEqual(F.conv2d(x.to("ocl"), numbers(5, 4, 3, 3).to("ocl")).shape, (0, 5, 4, 4))

    def test_pools(self) -> None:
        image, volume = numbers(2, 6, 9, 8), numbers(2, 3, 6, 5, 8)
        for name, call in {
            "max": lambda x: F.max_pool2d(x, 3, 2, 1),
            "max with places": lambda x: F.max_pool2d(x, 2, return_indices=True),
            "average": lambda x: F.avg_pool2d(x, 3, 2, 1),
            "adaptive average": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
            "global average": lambda x: F.adaptive_avg_pool2d(x, 1),
            "adaptive max": lambda x: F.adaptive_max_pool2d(x, 3),
            "lp": lambda x: F.lp_pool2d(x.abs(), 2, 2),
            "max unpool": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        }.items():
            for layout, x in in_layouts(image).items():
                self.agree(call, x, name=(name, layout))
        for name, call in {
            "max": lambda x: F.max_pool3d(x, 2),
            "average": lambda x: F.avg_pool3d(x, 2),
            "adaptive average": lambda x: F.adaptive_avg_pool3d(x, 2),
            "adaptive max": lambda x: F.adaptive_max_pool3d(x, 2),
        }.items():
            for layout, x in in_layouts(volume).items():
                self.agree(call, x, name=(name, "volume", layout))

    def test_norms(self) -> None:
        scale, shift = numbers(32, seed=1), numbers(32, seed=2)
        mean, var = numbers(32, seed=3), numbers(32, seed=4).exp()
        for sizes in ((3, 32, 5, 6), (2, 32, 2, 3, 4)):
            for name, call in {
                "batch": lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True),
                "batch, evaluation": lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b),
            }.items():
                for layout in ("contiguous", "channels_last"):
                    x = in_layouts(numbers(*sizes))[layout]
                    tensors = (x, scale, shift, mean, var)
                    self.agree(call, *tensors, grad=(0, 1, 2), name=(name, layout, sizes))
            for layout, x in in_layouts(numbers(*sizes)).items():
                self.agree(
                    lambda x, w, b: F.group_norm(x, 4, w, b),
                    x,
                    scale,
                    shift,
                    grad=(0, 1, 2),
                    contiguous=CONTIGUOUS_GROUP_NORMS * (0,),
                    name=("group", layout, sizes),
                )
                if layout not in ("transposed", "expanded"):  # CUDA's strides, not the CPU's
                    self.agree(F.instance_norm, x, name=("instance", layout, sizes))
                shape = sizes[2:]
                self.agree(lambda x: F.layer_norm(x, shape), x, name=("layer", layout, sizes))

    def test_running_statistics_in_channels_last(self) -> None:
        x = (numbers(3, 32, 5, 6) * 2 + 3).to(memory_format=LAST)
        ours, theirs = nn.BatchNorm2d(32).to("ocl"), nn.BatchNorm2d(32)
        self.same(ours(x.to("ocl")).detach(), theirs(x).detach(), "result")
        for name, t in theirs.named_buffers():
            torch.testing.assert_close(ours.get_buffer(name).cpu(), t, rtol=1e-5, atol=1e-5)

    def test_pads_and_resampling(self) -> None:
        image = numbers(2, 8, 6, 7)
        calls: dict[str, Callable] = {
            "reflect": lambda x: F.pad(x, (1, 2, 3, 1), mode="reflect"),
            "replicate": lambda x: F.pad(x, (1, 2, 3, 1), mode="replicate"),
            "replicate, negative": lambda x: F.pad(x, (-1, 2, 1, 1), mode="replicate"),
            "circular": lambda x: F.pad(x, (1, 2, 3, 1), mode="circular"),
            "constant": lambda x: F.pad(x, (1, 2, 3, 1), value=2.0),
            "nearest": lambda x: F.interpolate(x, scale_factor=2),
            "bilinear": lambda x: F.interpolate(x, (9, 5), mode="bilinear", align_corners=True),
            "bicubic": lambda x: F.interpolate(x, (9, 12), mode="bicubic"),
            "antialiased": lambda x: F.interpolate(x, (4, 3), mode="bilinear", antialias=True),
            "area": lambda x: F.interpolate(x, (3, 4), mode="area"),
            "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
            "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[:, :, :, :6], 2),
            "channel_shuffle": lambda x: torch.channel_shuffle(x, 4),
            "unfold": lambda x: F.unfold(x, 2),
        }
        for name, call in calls.items():
            for layout, x in in_layouts(image).items():
                if (name, layout) != ("unfold", "expanded"):
                    self.agree(call, x, name=(name, layout))

    def test_grid_sample(self) -> None:
        grid = numbers(2, 4, 5, 2, seed=1).clamp(-1, 1)
        for layout, x in in_layouts(numbers(2, 8, 6, 7)).items():
            self.agree(
                lambda x, g: F.grid_sample(x, g, align_corners=False),
                x,
                grid,
                grad=(0, 1),
                name=layout,
            )

    def test_selection_and_joining(self) -> None:
        pick = torch.tensor([2, 0, 1, 1])
        places = torch.randint(0, 5, (2, 8, 5, 6), generator=torch.Generator().manual_seed(1))
        calls: dict[str, Callable] = {
            "cat": lambda x, i, j: torch.cat([x, x * 2], 1),
            "cat of two formats": lambda x, i, j: torch.cat([x, x.contiguous()], 1),
            "stack": lambda x, i, j: torch.stack([x, x], 1),
            "index": lambda x, i, j: x[:, i],
            "index of images": lambda x, i, j: x[i.clamp(0, 1)],
            "index_select": lambda x, i, j: x.index_select(1, i),
            "gather": lambda x, i, j: x.gather(2, j),
            "take_along_dim": lambda x, i, j: x.take_along_dim(j, 2),
            "where": lambda x, i, j: torch.where(j > 2, x, x * 3),
            "flip": lambda x, i, j: x.flip(2),
            "softmax": lambda x, i, j: x.softmax(1),
            "cumsum": lambda x, i, j: x.cumsum(1),
            "sum": lambda x, i, j: x.sum(0),
            "mean": lambda x, i, j: x.mean((2, 3), keepdim=True),
            "amax": lambda x, i, j: x.amax(1, keepdim=True),
            "gelu": lambda x, i, j: F.gelu(x),
            "prelu": lambda x, i, j: F.prelu(x, x.detach()[0, :, 0, 0].contiguous()),
            "clone": lambda x, i, j: x.clone(),
            "repeat": lambda x, i, j: x.repeat(1, 2, 1, 1),
        }
        for name, call in calls.items():
            for layout, x in in_layouts(numbers(2, 8, 5, 6)).items():
                self.agree(call, x, pick, places, name=(name, layout))

    def test_gradient_of_batch_norm_has_the_format_of_the_input(self) -> None:
        last, first = numbers(2, 32, 5, 6).to(memory_format=LAST), numbers(2, 32, 5, 6, seed=1)
        for x, slope in ((last, first), (first, last)):
            found = []
            for device in ("ocl", "cpu"):
                leaf = x.to(device).requires_grad_()
                out = F.batch_norm(leaf, None, None, training=True)
                found += torch.autograd.grad(out, leaf, slope.to(device))
            self.same(*found, strides(x))

    def test_promises_of_fake_tensors(self) -> None:
        aten = torch.ops.aten
        x, w = numbers(2, 8, 6, 7).to(memory_format=LAST).to("ocl"), numbers(4, 8, 3, 3).to("ocl")
        v = numbers(2, 3, 4, 5, 6).to(memory_format=LAST_3D).to("ocl")
        plain, mode = x.contiguous(), FakeTensorMode()
        calls: dict[str, Callable] = {
            "image": lambda x, p, w, v: F.conv2d(x, w),
            "weight": lambda x, p, w, v: F.conv2d(p, w.to(memory_format=LAST)),
            "neither": lambda x, p, w, v: F.conv2d(p, w),
            "transposed": lambda x, p, w, v: F.conv_transpose2d(x, w.transpose(0, 1), stride=2),
            "volume": lambda x, p, w, v: F.conv3d(v, v[:, :, :2, :2, :2]),
            "line": lambda x, p, w, v: F.conv1d(p[0], w[:, :6, :, 0]),
            "gradients": lambda x, p, w, v: aten.convolution_backward(
                x.new_ones(2, 4, 4, 5),
                x,
                w,
                [4],
                [1, 1],
                [0, 0],
                [1, 1],
                False,
                [0, 0],
                1,
                [True] * 3,
            ),
            "one gradient": lambda x, p, w, v: aten.convolution_backward(
                x.new_ones(2, 4, 4, 5),
                x,
                w,
                None,
                [1, 1],
                [0, 0],
                [1, 1],
                False,
                [0, 0],
                1,
                [False, True, False],
            ),
            "pixel_shuffle": lambda x, p, w, v: F.pixel_shuffle(x, 2),
            "padding": lambda x, p, w, v: aten.reflection_pad2d_backward(
                F.pad(p, (1, 1, 1, 1)), x, [1, 1, 1, 1]
            ),
            "padding, replicated": lambda x, p, w, v: aten.replication_pad2d_backward(
                F.pad(p, (1, 1, 1, 1)), x, [1, 1, 1, 1]
            ),
            "pixel_unshuffle": lambda x, p, w, v: F.pixel_unshuffle(x[..., :6], 2),
            "channel_shuffle": lambda x, p, w, v: torch.channel_shuffle(x, 4),
        }
        for name, call in calls.items():
            with self.subTest(name=name):
                given = (x, plain, w, v)
                real = call(*given)
                with mode:
                    fake = call(*map(mode.from_tensor, given))
                pairs = zip(*map(torch.utils._pytree.tree_leaves, (real, fake)), strict=True)
                for a, b in pairs:
                    if a is not None:
                        self.assertEqual((a.shape, strides(a)), (b.shape, strides(b)))

    def test_compiled_views_of_results(self) -> None:
        # A traced view is replayed by what the fake results promised.
        conv, norm = nn.Conv2d(8, 12, 3).to("ocl"), nn.BatchNorm2d(12).to("ocl")

        def call(x: Tensor) -> Tensor:
            y = norm(conv(x)).permute(0, 2, 3, 1)
            return y.view(-1, 12) if y.is_contiguous() else y.permute(0, 3, 1, 2).view(-1)

        compiled = torch.compile(call, backend="aot_eager")
        for x in (numbers(2, 8, 6, 6), numbers(2, 8, 6, 6).to(memory_format=LAST)):
            x = x.to("ocl").requires_grad_()
            ours, theirs = compiled(x), call(x)
            torch.testing.assert_close(ours.cpu(), theirs.cpu())
            a, b = [torch.autograd.grad(y.square().sum(), x)[0] for y in (ours, theirs)]
            self.assertEqual(strides(a), strides(b))
            torch.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-4, atol=1e-4)

    def test_nonzero_has_contiguous_columns(self) -> None:
        x = numbers(4, 5, 6).relu()
        for t in (x, x[:, :1], x[0, 0], x[0, 0, 0] + 1, torch.zeros(3, 4)):
            found = t.to("ocl").nonzero()
            self.assertEqual(found.stride(), t.nonzero().stride())
            self.assertTrue(torch.equal(found.cpu(), t.nonzero()))
        self.same(torch.argwhere(x.to("ocl")), torch.argwhere(x), "argwhere")
        out = torch.empty(0, dtype=torch.int64, device="ocl")
        self.assertTrue(torch.equal(torch.nonzero(x.to("ocl"), out=out).cpu(), x.nonzero()))

    def test_dropout_keeps_the_format(self) -> None:
        x = numbers(2, 8, 5, 6).to(memory_format=LAST)
        ours = x.to("ocl").requires_grad_()
        out = F.dropout(ours, 0.5)
        (grad,) = torch.autograd.grad(out, ours, torch.ones_like(out))
        self.assertEqual(strides(out), strides(x))
        self.assertEqual(strides(grad), strides(x))
        torch.testing.assert_close(out.detach().cpu(), x * grad.cpu())

    def test_views_of_results_in_channels_last(self) -> None:
        # A view that joins positions needs them to lie in a line, which only this format has.
        x, w = numbers(2, 16, 6, 6).to(memory_format=LAST), numbers(20, 16, 3, 3)
        for device in ("cpu", "ocl"):
            out = F.conv2d(x.to(device), w.to(device))
            self.assertEqual(out.permute(0, 2, 3, 1).view(-1, 20).shape, (32, 20))
            self.assertRaises(RuntimeError, out.view, 2, -1)


class Block(nn.Module):
    """A bottleneck of a residual network."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, 2 * channels, 1, bias=False),
            nn.BatchNorm2d(2 * channels),
        )
        self.short = nn.Conv2d(channels, 2 * channels, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x))


def residual() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, 2, 3, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Block(16, 16, 1),
        Block(32, 20, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 5),
    )


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU())
            for i, o in ((3, 16), (16, 32), (32, 32))
        )
        self.up = nn.ModuleList(
            (
                nn.ConvTranspose2d(32, 32, 2, 2),
                nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(64, 16, 3, padding=1)),
            )
        )
        self.pool, self.last = nn.AvgPool2d(2), nn.Conv2d(32, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down[0](x)
        b = self.down[1](self.pool(a))
        c = self.down[2](self.pool(b))
        b = torch.cat([b, self.up[0](c)], 1)
        return self.last(torch.cat([a, self.up[1](b)], 1)).mean((2, 3))


class Networks(Case):
    def make(self, build: Callable[[], nn.Module], device: str) -> nn.Module:
        torch.manual_seed(3)
        return build().to(memory_format=LAST).to(device)

    def test_every_intermediate_has_the_strides_of_the_cpu(self) -> None:
        x = numbers(2, 3, 32, 32).to(memory_format=LAST)
        for build in (residual, UNet):
            seen: dict[str, list] = {"cpu": [], "ocl": []}
            for device, found in seen.items():
                model = self.make(build, device)
                for name, part in model.named_modules():
                    if not list(part.children()):
                        part.register_forward_hook(
                            lambda _, __, out, name=name, found=found: found.append((name, out))
                        )
                        part.register_full_backward_hook(
                            lambda _, grads, __, name=name, found=found: found.append(
                                (name + ", gradient", grads[0])
                            )
                        )
                model(x.to(device).requires_grad_()).square().sum().backward()
            self.assertGreater(len(seen["cpu"]), 20)
            for (name, ours), (other, theirs) in zip(seen["ocl"], seen["cpu"], strict=True):
                self.assertEqual(name, other)
                ours, theirs = ours.detach(), theirs.detach()
                group_norms = ("down.0.1, gradient", "down.1.1, gradient", "down.2.1, gradient")
                if CONTIGUOUS_GROUP_NORMS and name in group_norms:
                    self.assertTrue(ours.is_contiguous())
                    theirs = theirs.contiguous()
                self.same(ours, theirs, (build.__name__, name), close=2e-3)

    def test_training(self) -> None:
        x = numbers(4, 3, 32, 32).to(memory_format=LAST)
        target = torch.tensor([0, 3, 1, 4])
        for build in (residual, UNet):
            ended = {}
            for device in ("cpu", "ocl"):
                model = self.make(build, device)
                optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
                losses = []
                for _ in range(4):
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(x.to(device)), target.to(device))
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                ended[device] = (losses, model)
            ours, theirs = ended["ocl"], ended["cpu"]
            # Sums of other orders differ in the last bits, which normalisation of few elements and
            # four steps enlarge.
            torch.testing.assert_close(ours[0], theirs[0], rtol=2e-3, atol=2e-3)
            self.assertLess(theirs[0][-1], theirs[0][0])
            for (name, a), b in zip(
                ours[1].named_parameters(), theirs[1].parameters(), strict=True
            ):
                self.same(a.detach(), b.detach(), (build.__name__, name), close=5e-3)
                self.assertEqual(strides(a.grad), strides(b.grad), name)


if __name__ == "__main__":
    unittest.main()
