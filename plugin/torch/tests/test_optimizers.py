"""Optimizers, foreach operators and gradient clipping: results of the CPU, in few launches."""

import itertools
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn, optim

SHAPES = ((7, 5), (33,), (), (3, 4, 2, 2), (1, 70), (260, 17), (0, 3))


def parameters(device: str, dtype: torch.dtype, shapes=SHAPES) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(11)
    made = [torch.randn(s, generator=generator).to(dtype) for s in shapes]
    made[3] = made[3].to(memory_format=torch.channels_last)  # dense, not row-major
    return [nn.Parameter(t.to(device)) for t in made]


def gradients(step: int, like: list[nn.Parameter]) -> list[torch.Tensor]:
    """The same for every device, well away from 0, where the first steps of Adam are a sign."""
    generator = torch.Generator().manual_seed(step)
    made = []
    for p in like:
        t = torch.randn(p.shape, generator=generator)
        made.append((t + 0.1 * t.sign()).to(p.dtype))
    return made


def launches(work) -> int:
    before = torch.ocl.counters()["launches"]
    work()
    torch.ocl.synchronize()
    return torch.ocl.counters()["launches"] - before


def train(kind, device: str, dtype=torch.float32, steps: int = 20, **options):
    """Parameters after some steps, the state, and the launches of the last step."""
    ps = parameters(device, dtype)
    optimizer = kind(ps, **options)
    count = 0
    for step in range(steps):
        for p, g in zip(ps, gradients(step, ps)):
            p.grad = (
                g.to(device).to(memory_format=torch.channels_last) if p.dim() == 4 else g.to(device)
            )
        if device == "ocl":
            count = launches(optimizer.step)
        else:
            optimizer.step()
    return ps, optimizer, count


ADAM = [
    {},
    {"amsgrad": True, "weight_decay": 0.1},
    {"maximize": True, "lr": 0.03, "betas": (0.5, 0.75), "eps": 1e-4},
    {"weight_decay": 0.05, "amsgrad": True, "maximize": True},
]
SGD = [
    {"lr": 0.1},
    {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "maximize": True},
]
OTHERS = [
    (optim.Adagrad, 8),
    (optim.RMSprop, 8),
    (optim.Adadelta, 12),
    (optim.NAdam, 12),
    (optim.RAdam, 12),
    (optim.Adamax, 10),
]


class Optimizers(unittest.TestCase):
    def check(self, kind, most: int, dtype=torch.float32, tolerance=None, **options) -> None:
        tolerance = tolerance or {"rtol": 2e-5, "atol": 2e-6}
        with self.subTest(kind=kind.__name__, dtype=dtype, **options):
            plain = {k: v for k, v in options.items() if k not in ("foreach", "fused")}
            want, theirs, _ = train(kind, "cpu", dtype, foreach=False, **plain)
            got, ours, count = train(kind, "ocl", dtype, **options)
            self.assertLessEqual(count, most)
            self.assertGreater(count, 0)
            for a, b in zip(got, want):
                torch.testing.assert_close(a.detach().cpu(), b.detach(), **tolerance)
                self.assertEqual(a.stride(), b.stride())
            for a, b in zip(ours.state.values(), theirs.state.values()):
                for key, value in b.items():
                    if isinstance(value, torch.Tensor):
                        torch.testing.assert_close(a[key].cpu(), value, **tolerance)

    def test_adam(self) -> None:
        for kind, options in itertools.product((optim.Adam, optim.AdamW), ADAM):
            self.check(kind, 12, **options)  # foreach is the default
            self.check(kind, 12, foreach=True, **options)
            self.check(kind, 2, fused=True, **options)

    def test_sgd(self) -> None:
        for options in SGD:
            self.check(optim.SGD, 6, **options)
            self.check(optim.SGD, 1, fused=True, **options)

    def test_adagrad(self) -> None:
        for options in ({}, {"lr_decay": 0.1, "weight_decay": 0.05, "maximize": True}):
            self.check(optim.Adagrad, 2, fused=True, **options)

    def test_others_take_a_fixed_number_of_launches(self) -> None:
        for kind, most in OTHERS:
            self.check(kind, most, weight_decay=0.05)

    def test_types(self) -> None:
        self.check(optim.AdamW, 2, torch.float64, {"rtol": 1e-12, "atol": 1e-13}, fused=True)
        self.check(optim.AdamW, 12, torch.float64, {"rtol": 1e-12, "atol": 1e-13})
        # Each step rounds parameters and state once on ocl, several times on the CPU.
        for dtype, eps in ((torch.bfloat16, 2**-8), (torch.float16, 2**-11)):
            loose = {"rtol": 24 * eps, "atol": 24 * eps}
            self.check(optim.SGD, 1, dtype, loose, fused=True, lr=0.05, momentum=0.5)

    def test_tensor_learning_rate(self) -> None:
        for device in ("cpu", "ocl"):
            for kind in (optim.Adam, optim.SGD):
                lr = torch.tensor(0.02, device=device)
                with self.subTest(kind=kind.__name__, device=device):
                    want, _, _ = train(kind, "cpu", lr=0.02)
                    got, _, _ = train(kind, "ocl", lr=lr, fused=True)
                    for a, b in zip(got, want):
                        torch.testing.assert_close(
                            a.detach().cpu(), b.detach(), rtol=2e-5, atol=2e-6
                        )

    def test_capturable(self) -> None:
        want, _, _ = train(optim.Adam, "cpu", lr=0.02)
        got, optimizer, _ = train(optim.Adam, "ocl", lr=0.02, capturable=True)
        self.assertEqual(optimizer.state[got[0]]["step"].device.type, "ocl")
        for a, b in zip(got, want):  # 1 - beta**step in float32 costs digits
            torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=2e-4, atol=2e-5)

    def test_many_segments(self) -> None:
        """More tensors with driver memory of their own than a launch takes buffers."""
        shapes = [(1 << 20,)] * 24
        for options, most in (({"fused": True}, 24), ({"foreach": True}, 24)):
            results = []
            for device in ("cpu", "ocl"):
                ps = [
                    nn.Parameter(torch.full(s, 0.5 + i, device=device))
                    for i, s in enumerate(shapes)
                ]
                for i, p in enumerate(ps):
                    p.grad = torch.full_like(p, 0.25 - i)
                optimizer = optim.SGD(
                    ps, lr=0.1, momentum=0.5, **(options if device == "ocl" else {})
                )
                optimizer.step()
                if device == "ocl":
                    self.assertLess(launches(optimizer.step), most)
                else:
                    optimizer.step()
                results.append([p.detach().cpu() for p in ps])
            for a, b in zip(*results):
                torch.testing.assert_close(b, a)


def lists(device: str, dtype=torch.float32, count: int = 3) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    made = []
    for _ in range(count):
        tensors = [torch.rand(s, generator=generator) * 3 + 0.25 for s in SHAPES]
        made.append([t.to(dtype).to(device) for t in tensors])
    return made


NUMBERS = [0.5 + 0.25 * i for i in range(len(SHAPES))]
UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
CALLS = {
    "add": lambda f, a, b, c: [
        f(a, b, alpha=2),
        f(a, 0.5),
        f(a, NUMBERS),
        f(a, a[2].new_tensor(0.75), alpha=3),
    ],
    "sub": lambda f, a, b, c: [f(a, b, alpha=2), f(a, 0.5), f(a, NUMBERS)],
    "mul": lambda f, a, b, c: [
        f(a, b),
        f(a, 3),
        f(a, NUMBERS),
        f(a, a[2].new_tensor(0.75)),
        f(a, torch.tensor(0.5)),
    ],
    "div": lambda f, a, b, c: [f(a, b), f(a, 3), f(a, NUMBERS), f(a, a[2].new_tensor(0.75))],
    "clamp_max": lambda f, a, b, c: [f(a, b), f(a, 1.5), f(a, NUMBERS)],
    "clamp_min": lambda f, a, b, c: [f(a, b), f(a, 1.5), f(a, NUMBERS)],
    "maximum": lambda f, a, b, c: [f(a, b), f(a, 1.5), f(a, NUMBERS)],
    "minimum": lambda f, a, b, c: [f(a, b), f(a, 1.5), f(a, NUMBERS)],
    "pow": lambda f, a, b, c: [f(a, b), f(a, 2), f(a, NUMBERS)],
    "addcmul": lambda f, a, b, c: [
        f(a, b, c, value=0.5),
        f(a, b, c, NUMBERS),
        f(a, b, c, torch.tensor(NUMBERS)),
    ],
    "addcdiv": lambda f, a, b, c: [
        f(a, b, c, value=0.5),
        f(a, b, c, NUMBERS),
        f(a, b, c, torch.tensor(NUMBERS)),
    ],
    "lerp": lambda f, a, b, c: [f(a, b, 0.25), f(a, b, c), f(a, b, NUMBERS)],
}
ALL = CALLS | {name: (lambda f, a, b, c: [f(a)]) for name in UNARY}


class Foreach(unittest.TestCase):
    def compare(self, ours, theirs, **tolerance) -> None:
        tolerance = tolerance or {"rtol": 3e-6, "atol": 1e-6, "equal_nan": True}
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a.cpu(), b, **tolerance)

    def test_results(self) -> None:
        for name, call in ALL.items():
            with self.subTest(name=name):
                outs = []
                function = getattr(torch, f"_foreach_{name}")
                for device in ("cpu", "ocl"):
                    outs.append(call(function, *lists(device)))
                for ours, theirs in zip(outs[1], outs[0], strict=True):
                    self.compare(ours, theirs)
                one = launches(lambda: function(*lists("ocl", count=1))) if name in UNARY else 0
                self.assertLessEqual(one, 1)

    def test_in_place(self) -> None:
        for name, call in ALL.items():
            in_place = getattr(torch, f"_foreach_{name}_")
            outs = []
            for device in ("cpu", "ocl"):

                def fresh(a, *args, **kwargs):
                    copies = [t.clone() for t in a]
                    in_place(copies, *args, **kwargs)
                    return copies

                outs.append(call(fresh, *lists(device)))
            with self.subTest(name=name):
                for ours, theirs in zip(outs[1], outs[0], strict=True):
                    self.compare(ours, theirs)

    def test_types(self) -> None:
        """What the kernels do not take runs tensor by tensor: integers, and lists of several
        types."""
        for dtype in (
            torch.int64,
            torch.int32,
            torch.uint8,
            torch.float16,
            torch.bfloat16,
            torch.float64,
        ):
            for name in ("add", "mul", "maximum", "neg", "sqrt"):
                if name == "neg" and dtype == torch.uint8:
                    continue
                with self.subTest(dtype=dtype, name=name):
                    outs = []
                    for device in ("cpu", "ocl"):
                        a, b, _ = lists(device, dtype)
                        f = getattr(torch, f"_foreach_{name}")
                        outs.append(f(a) if name in UNARY else f(a, b) + f(a, 2))
                    self.compare(
                        outs[1], outs[0], rtol=2e-2 if dtype.itemsize == 2 else 1e-6, atol=0
                    )
        mixed = [torch.ones(3, device="ocl"), torch.ones(2, device="ocl", dtype=torch.float64)]
        self.assertEqual(
            [t.dtype for t in torch._foreach_mul(mixed, 2)], [torch.float32, torch.float64]
        )
        ints = torch._foreach_add([torch.arange(3, device="ocl")], 0.5)
        torch.testing.assert_close(ints[0].cpu(), torch.arange(3) + 0.5)

    def test_layouts(self) -> None:
        base = torch.arange(48.0).reshape(6, 8)
        views = (
            lambda t: [t.t(), t[1:3, ::2], t[5], t[0, :1].expand(4)],
            lambda t: [t.flip(0)[:, 1:4], t[:, 3], t.as_strided((2, 2), (9, 2), 3), t[2:2]],
        )
        for view in views:
            outs = []
            for device in ("cpu", "ocl"):
                a = view(base.clone().to(device))
                b = [t.contiguous() for t in a]
                outs.append(torch._foreach_addcmul(a, b, a, value=0.5))
            self.compare(outs[1], outs[0])
            self.assertEqual([t.stride() for t in outs[1]], [t.stride() for t in outs[0]])

    def test_shared_memory(self) -> None:
        """Tensors that share memory are changed one after the other."""
        for device in ("cpu", "ocl"):
            t = torch.ones(8, device=device)
            torch._foreach_mul_([t, t[2:6], t[:3]], 2)
            self.assertEqual(t.tolist(), [4, 4, 8, 4, 4, 4, 2, 2])
            a = torch.arange(8.0, device=device)
            torch._foreach_add_([a[:4], a[4:]], [a[4:], a[:4]])
            self.assertEqual(a.tolist(), [4, 6, 8, 10, 8, 11, 14, 17])

    def test_many_in_any_order(self) -> None:
        """Whether two of many tensors share memory does not depend on where the pool put them."""
        order = torch.randperm(200, generator=torch.Generator().manual_seed(5)).tolist()
        for overlap in (False, True):
            results = []
            for device in ("cpu", "ocl"):
                base = torch.arange(1600.0, device=device)
                parts = [base[8 * k : 8 * k + 8] for k in order]
                if overlap:
                    parts[57] = base[8 * 31 + 4 : 8 * 31 + 12]
                count = launches(lambda parts=parts: torch._foreach_mul_(parts, 2))
                self.assertEqual(count > 100, overlap and device == "ocl")
                results.append(base.tolist())
            self.assertEqual(results[1], results[0])

    @unittest.skipUnless(hasattr(torch, "_foreach_clone"), "new in PyTorch 2.13")
    def test_clone_and_reductions(self) -> None:
        torch.manual_seed(9)
        lists = (
            [torch.randn(3, 4).t(), torch.randn(5), torch.randn(())],
            [torch.randn(3, 4), torch.randn(5).double(), torch.arange(4.0).half()],
            [torch.arange(6), torch.ones(2, dtype=torch.bool)],
        )
        for mine in lists:
            ours = [t.to("ocl") for t in mine]
            copies = torch._foreach_clone(ours)
            for copy, source, theirs in zip(copies, ours, torch._foreach_clone(mine), strict=True):
                self.assertTrue(torch.equal(copy.cpu(), theirs))
                self.assertEqual((copy.dtype, copy.stride()), (theirs.dtype, theirs.stride()))
                self.assertNotEqual(copy.data_ptr(), source.data_ptr())
            if mine[0].is_floating_point():
                self.compare(torch._foreach_max(ours), torch._foreach_max(mine))
                self.compare(
                    torch._foreach_powsum(ours, 2),
                    torch._foreach_powsum(mine, 2),
                    rtol=1e-3,
                    atol=1e-5,
                )
        self.assertEqual(len(torch._foreach_clone([ours[0]] * 3)), 3)

    def test_copy_and_zero(self) -> None:
        for dtype in (torch.float32, torch.float16, torch.int32):
            a, b, _ = lists("ocl", dtype)
            source = lists("cpu")[1]
            torch._foreach_copy_(a, [t.to("ocl") for t in source])
            self.compare(a, [t.to(dtype) for t in source], rtol=0, atol=0)
            torch._foreach_zero_(b)
            self.assertFalse(any(t.any() for t in b))
        a[0][0, 0] = float("nan") if dtype.is_floating_point else 1
        host = [torch.empty_like(t, device="cpu") for t in a]
        torch._foreach_copy_(host, a)
        self.compare(host, [t.cpu() for t in a], rtol=0, atol=0)

    def test_norm(self) -> None:
        a = lists("cpu")[0]
        ours = [t.to("ocl") for t in a]
        for order in (1, 2, 3, float("inf")):
            some = [t for t in a if t.numel()] if order == float("inf") else a
            mine = [t for t in ours if t.numel()] if order == float("inf") else ours
            with self.subTest(order=order):
                self.compare(torch._foreach_norm(mine, order), torch._foreach_norm(some, order))
        ours[1][3] = float("nan")
        for order in (1, 2, float("inf")):
            norms = torch._foreach_norm(ours[:2], order)
            self.assertEqual([n.isnan().item() for n in norms], [False, True])

    def test_errors(self) -> None:
        a = [torch.ones(2, device="ocl")]
        for bad in (
            lambda: torch._foreach_add(a, []),
            lambda: torch._foreach_add([], 1),
            lambda: torch._foreach_add(a, [1.0, 2.0]),
        ):
            with self.assertRaises(RuntimeError):
                bad()

    def test_gradients(self) -> None:
        a, b, _ = lists("ocl")
        a = [t.requires_grad_() for t in a]
        sum(t.sum() for t in torch._foreach_mul(torch._foreach_sqrt(a), b)).backward()
        for t, other in zip(a, b):
            torch.testing.assert_close(t.grad, 0.5 * other / t.detach().sqrt())


class Clipping(unittest.TestCase):
    def test_norm_and_value(self) -> None:
        for order in (2.0, float("inf"), 1.0):
            results = []
            for device in ("cpu", "ocl"):
                ps = parameters(device, torch.float32, SHAPES[:6] * 8)
                for p, g in zip(ps, gradients(1, ps)):
                    p.grad = g.to(device)
                count = launches(lambda: results.append(nn.utils.clip_grad_norm_(ps, 0.5, order)))
                self.assertLessEqual(count, 12)  # for 48 gradients
                results.append([p.grad.cpu() for p in ps])
            torch.testing.assert_close(results[2].cpu(), results[0], rtol=1e-5, atol=0)
            for a, b in zip(results[3], results[1]):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
        self.assertLessEqual(launches(lambda: nn.utils.clip_grad_value_(ps, 0.01)), 4)
        self.assertTrue(all(p.grad.abs().max() <= 0.01 for p in ps))

    def test_zero_grad(self) -> None:
        ps = parameters("ocl", torch.float32)
        for p in ps:
            p.grad = torch.ones_like(p)
        self.assertEqual(
            launches(lambda: optim.SGD(ps, lr=1, foreach=True).zero_grad(set_to_none=False)), 1
        )
        self.assertFalse(any(p.grad.any() for p in ps))


if __name__ == "__main__":
    unittest.main()
