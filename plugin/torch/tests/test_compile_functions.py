"""torch.compile: functions of each kind, with sizes that are fixed and sizes that vary."""

import unittest
from collections.abc import Callable

import torch
import torch.nn.functional as F
from compile_case import CompileCase
from gpu_style import IS_GPU_STYLE, THOROUGH, InGpuStyle, for_gpus

r = torch.randn


def randint(*size: int, low: int = 0, high: int = 10) -> torch.Tensor:
    return torch.randint(low, high, size)


# By name: a function and its inputs' sizes, or the inputs themselves.
FUNCTIONS = {
    "broadcast": (lambda a, b: (a + b).sin(), (8, 1, 19), (5, 1)),
    "transposed": (lambda a, b: (a.t() + b).contiguous(), (40, 48), (48, 40)),
    "sums": (lambda a: (a.sum(-1), a.sum(0), (a * 2).sum(), a.prod(1)), (33, 100)),
    "long sum": (lambda a: a.sum(), (300, 333)),
    "moments": (lambda a: torch.var_mean(a + 50, -1), (7, 200)),
    "layer norm": (lambda a, w, b: F.layer_norm(a, (96,), w, b), (5, 9, 96), (96,), (96,)),
    "softmax": (lambda a: (a.softmax(0), a.log_softmax(-1)), (50, 20)),
    "best": (lambda a: (a.max(-1)[0], a.argmax(-1), a.argmin(0), a.amin()), (9, 77)),
    "truths": (lambda a: ((a > 2).any(-1), (a > -3).all(0), (a > 0).sum(), ~(a > 0)), (9, 77)),
    "activations": (
        lambda a: (F.gelu(a), F.gelu(a, approximate="tanh"), F.silu(a), F.softplus(a), F.mish(a)),
        (100,),
    ),
    "joined": (lambda a, b: torch.cat([a, b * 2, a], 1).exp(), (4, 5), (4, 3)),
    "padded": (lambda a: F.pad(a, (1, 2, 3, 0)) + 1, (2, 3, 4, 5)),
    "indexed": (
        lambda a, i: (a[i] * 2, a.gather(0, i[:, None] % 3)), (10, 6), torch.tensor([1, -1, 3]),
    ),
    "embedded": (lambda w, i: F.embedding(i, w).sum(1), (10, 6), randint(4, 3)),
    "chosen": (lambda a: torch.where(a > 0, a, -a.exp()).clamp(-1, 1), (77,)),
    "flipped": (lambda a: a.flip(0) + a.roll(2, 1), (6, 9)),
    "sliced": (lambda a: a[:, ::2] + a[:, 1::2], (6, 10)),
    "scanned": (lambda a: ((a * 2).cumsum(-1) * 2, (a * 1).sort(-1)[0] + 1), (6, 10)),
    "product": (lambda a, b, c: F.relu(a @ b + c), (16, 20), (20, 24), (24,)),
    "convolved": (lambda a, w: F.relu(F.conv2d(a, w, padding=1)), (2, 3, 8, 8), (4, 3, 3, 3)),
    "pooled": (
        lambda a: (F.max_pool2d(a, 2), F.avg_pool2d(a, 2) + 1, F.adaptive_avg_pool2d(a, 1)),
        (2, 3, 8, 8),
    ),
    "resized": (lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"), (2, 3, 8, 8)),
    "batch norm": (
        lambda a, w, b: F.batch_norm(a, None, None, w, b, True), (4, 6, 8, 8), (6,), (6,),
    ),
    "group norm": (lambda a, w, b: F.group_norm(a, 2, w, b), (4, 6, 8, 8), (6,), (6,)),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q * 2, q + 1, is_causal=True), (2, 4, 16, 8),
    ),
    "added by index": (
        lambda a, i, v: (a.index_add(0, i, v), a.scatter_add(0, i[:, None], v * 2)),
        (5, 3), torch.tensor([0, 2, 2]), (3, 3),
    ),
    "powers": (lambda a: (a.abs() ** 2.5, a**3, a.abs().sqrt().rsqrt(), 2.0**a), (40,)),
    "functions": (
        lambda a: (
            torch.erf(a) + torch.tanh(a) + torch.atan2(a, a + 1) + torch.sinh(a),
            a.log1p().nan_to_num(0), torch.hypot(a, a), torch.copysign(a, -a), a.expm1(),
        ),
        (40,),
    ),
    "without a formula": (lambda a: torch.special.i0e(a * 2) + torch.digamma(a.exp()), (40,)),
    "integers": (
        lambda a, b: (
            (a * 3 + 1) // 2 - (a ^ 5) + (a << 1), a % 7, torch.fmod(a, 7), a // b, a >> b,
        ),
        randint(37, low=-50, high=50), randint(37, low=1, high=9),
    ),
    "cross entropy": (lambda a, t: F.cross_entropy(a, t), (8, 11), randint(8)),
    "in place": (lambda a: a.add_(1)[1:].mul_(2).sum(0), (9, 40)),
    "remainders": (lambda a, b: (torch.fmod(a, b), a % b, torch.floor_divide(a, b)), (64,), (64,)),
    "complex": (lambda a: (torch.view_as_complex(a) * 2).abs() + 1, (20, 2)),
    "behind a call that gives a view": (lambda a: torch.view_as_complex(a).angle() + 1, (20, 2)),
    "scalars of the CPU": (lambda a, s: a * s + s, (33,), torch.tensor(3.0)),
}  # fmt: skip


class Functions(InGpuStyle, CompileCase):
    OPTIMISED = False

    def test_each(self) -> None:
        for name, (function, *given) in FUNCTIONS.items():
            inputs = [r(size) if isinstance(size, tuple) else size for size in given]
            for dynamic in (False, True) if THOROUGH or not IS_GPU_STYLE else (False,):
                with self.subTest(name, dynamic=dynamic):
                    torch._dynamo.reset()
                    self.check(function, *inputs, dynamic=dynamic)

    def test_types(self) -> None:
        """Chains are rounded to 16 bits once, at their end, so one operation of each is tried."""
        a = r(33, 7)
        for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8):
            with self.subTest(dtype):
                torch._dynamo.reset()
                x = (a.abs() * 20).to(dtype)
                self.check(lambda x: (x + 1, x.sum(0), x.amax(1), x > 3, x.to(torch.float32)), x)

    def test_numbers_of_python(self) -> None:
        """Sizes that vary make numbers with a fraction, and so does item(). The bound: where the
        device has no float64, each number is rounded some times."""
        functions = (
            lambda x, i: x + round(i / 2 * 123.4567, 2),
            lambda x, i: x + round(i / 2 * 123.4567, 1),
            lambda x, i: x + round(i / 2 * 123.4567, -1),
            lambda x, i: x + i / 7 + i**-0.5,
        )
        for function in functions:
            torch._dynamo.reset()
            self.check(function, torch.zeros(20), 3, dynamic=True, rtol=5e-7, atol=0)
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.check(lambda x, y: x + y.item() * 1.5, torch.zeros(20), torch.tensor(2.3))

    def test_bits(self) -> None:
        self.check(lambda a: (a.view(torch.int32) & 0xFF, (a * 2).half().view(torch.int16)), r(40))
        self.check(lambda a: (a.view(torch.int16) + 1, a.half().view(torch.float32).abs()), r(40))


GRID = torch.rand(2, 5, 6, 2) * 2 - 1
WHOLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2.5),
    "bilinear": lambda x: F.interpolate(x, size=(4, 30), mode="bilinear", align_corners=True),
    "bicubic": lambda x: F.interpolate(x, scale_factor=(1.5, 2.0), mode="bicubic"),
    "trilinear": lambda x: F.interpolate(x[None], scale_factor=2, mode="trilinear"),
    "reflection": lambda x: F.pad(x, (1, 2, 3, 1), mode="reflect"),
    "replication": lambda x: F.pad(x, (1, 2, 3, 1), mode="replicate"),
    "zeros": lambda x: F.pad(x, (-1, 2, 3, 1), value=2.0),
    "grid": lambda x: F.grid_sample(x, GRID.to(x.device), align_corners=False),
    "maxima": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "means": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "means of parts": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
}


class Whole(CompileCase):
    """Operators whose kernels for CPUs are better than what would be fused of their pieces."""

    @classmethod
    def setUpClass(cls) -> None:
        if for_gpus():
            raise unittest.SkipTest("kernels of GPUs take the pieces")

    def compare(self, function: Callable, dynamic: bool) -> list[int]:
        """With the CPU's results and gradients; how many kernels each pass has."""
        torch._dynamo.reset()
        x = torch.randn(2, 3, 9, 11)
        before, results = len(torch.ocl.compile_report()), []
        for device, call in (("ocl", torch.compile(function, dynamic=dynamic)), ("cpu", function)):
            own = x.to(device).requires_grad_()
            out = call(own)
            ramp = torch.linspace(-1, 1, out.numel()).view(out.shape).to(device)
            results.append((out.detach(), *torch.autograd.grad(out, own, ramp)))
        self.close(*results, 2e-5, 2e-5)
        return [len(graph.kernels) for graph in torch.ocl.compile_report()[before:]]

    def test_calls_and_their_gradients(self) -> None:
        for name, function in WHOLE.items():
            with self.subTest(name):
                kernels = self.compare(function, dynamic=False)
                self.assertEqual(sum(kernels), 0)

    def test_sizes_that_vary(self) -> None:
        for name in ("nearest", "bilinear", "zeros", "maxima"):
            with self.subTest(name):
                self.compare(WHOLE[name], dynamic=True)


if __name__ == "__main__":
    unittest.main()
