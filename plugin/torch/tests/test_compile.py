"""Tracing and transforming code that runs on ocl: torch.compile without Inductor, which has files
of its own (test_compile_*.py), torch.func, FakeTensor, export."""

import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    # Sums of a few dozen products in another order: some 2^-24 of values near one.
    torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), rtol=1e-5, atol=2e-6)


def numbers(*shape: int) -> torch.Tensor:
    return torch.linspace(-1.5, 2, torch.Size(shape).numel()).view(shape)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(50)
        self.first, self.norm, self.last = nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(torch.relu(self.first(x)) + x)
        if x.shape[0] > 100:
            y = y * 2
        return self.last(y).softmax(1)


class Compile(unittest.TestCase):
    def setUp(self) -> None:
        torch._dynamo.reset()

    def test_forward_and_backward(self) -> None:
        for backend in ("eager", "aot_eager"):
            for dynamic in (False, True):
                with self.subTest(backend=backend, dynamic=dynamic):
                    torch._dynamo.reset()
                    theirs, ours = Block(), Block().to("ocl")
                    compiled = torch.compile(ours, backend=backend, dynamic=dynamic, fullgraph=True)
                    for rows in (4, 7, 120):
                        x = numbers(rows, 6)
                        for model, device, module in (
                            (theirs, "cpu", theirs),
                            (compiled, "ocl", ours),
                        ):
                            module.zero_grad()
                            out = model(x.to(device))
                            (out * numbers(*out.shape).to(device)).sum().backward()
                        close(compiled(x.to("ocl")), theirs(x))
                        for a, b in zip(ours.parameters(), theirs.parameters()):
                            torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=2e-5)

    def test_mutation_views_and_randomness(self) -> None:
        def change(x, y):
            x.add_(1)
            x[1:] *= 2
            view = x.t()[0]
            view.sub_(y)
            return x.view(-1), view, torch.nn.functional.dropout(x, 0.5)

        for backend in ("eager", "aot_eager"):
            with self.subTest(backend):
                torch._dynamo.reset()
                compiled = torch.compile(change, backend=backend)
                ours, theirs = numbers(3, 4).to("ocl"), numbers(3, 4)
                torch.ocl.manual_seed(3)
                got = compiled(ours, torch.tensor(0.5, device="ocl"))
                want = change(theirs, torch.tensor(0.5))
                close(ours, theirs)
                close(got[0], want[0])
                close(got[1], want[1])
                torch.ocl.manual_seed(3)
                again = torch.nn.functional.dropout(ours, 0.5)
                self.assertTrue(torch.equal(again.cpu(), got[2].cpu()))
                got[0].zero_()  # it is a view still
                self.assertEqual(ours.abs().sum().item(), 0)

    def test_training_step(self) -> None:
        results = []
        for device, backend in (("cpu", None), ("ocl", "aot_eager")):
            model = Block().to(device)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.05, foreach=False)
            forward = torch.compile(model, backend=backend) if backend else model
            for i in range(5):
                x = (numbers(8, 6) * (i + 1)).to(device)
                loss = nn.functional.cross_entropy(forward(x), torch.arange(8, device=device) % 3)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            results.append([loss.detach().cpu(), *(p.detach().cpu() for p in model.parameters())])
        for a, b in zip(results[1], results[0]):
            torch.testing.assert_close(
                a, b, rtol=1e-4, atol=1e-4
            )  # Adam divides by small gradients

    def test_device_in_the_graph(self) -> None:
        @torch.compile(backend="eager", fullgraph=True)
        def make(x):
            y = torch.arange(5, device=x.device) + torch.zeros(5, device="ocl")
            return y.to(x.device), x.device.type == "ocl" and x.is_ocl

        out, flag = make(torch.ones(2, device="ocl"))
        self.assertEqual((out.tolist(), flag), ([0, 1, 2, 3, 4], True))

    def test_streams_and_breaks(self) -> None:
        def work(x):
            y = x * 2
            torch.ocl.synchronize()  # no graph holds this
            return y + 1

        self.assertEqual(
            torch.compile(work, backend="eager")(torch.ones(2, device="ocl")).tolist(), [3, 3]
        )

    def test_export(self) -> None:
        model = Block().to("ocl")
        rows = torch.export.Dim("rows", min=2, max=64)
        program = torch.export.export(
            model, (numbers(4, 6).to("ocl"),), dynamic_shapes=({0: rows},)
        )
        x = numbers(9, 6).to("ocl")
        close(program.module()(x), model(x).cpu())


class Fake(unittest.TestCase):
    def test_shapes_and_device(self) -> None:
        before = torch.ocl.counters()["launches"]
        with FakeTensorMode() as mode:
            a = torch.empty(1 << 20, 1 << 16, device="ocl")  # far more than there is memory
            b = mode.from_tensor(torch.ones(3, 4)).to("ocl")
            out = nn.functional.linear(a.t(), torch.randn(7, 1 << 20, device="ocl")).relu()
            self.assertEqual((out.shape, out.device), ((1 << 16, 7), torch.device("ocl:0")))
            self.assertEqual((b * 2).device.type, "ocl")
            with self.assertRaisesRegex(RuntimeError, "[Dd]evice"):
                b + torch.ones(4)
        self.assertEqual(torch.ocl.counters()["launches"], before)

    def test_from_real(self) -> None:
        real = numbers(4, 6).t().to("ocl")
        mode = FakeTensorMode()
        fake = mode.from_tensor(real)
        self.assertEqual(
            (fake.device, fake.stride(), fake.shape), (real.device, real.stride(), real.shape)
        )
        with mode:
            with torch.device("ocl"):
                model = Block()
            self.assertEqual(model(torch.ones(5, 6, device="ocl")).shape, (5, 3))

    def test_strides_agree(self) -> None:
        # What the tracer believes must be what the device makes.
        x = numbers(2, 3, 4, 5).to("ocl")
        calls = (
            lambda t: t.permute(0, 2, 3, 1) + 1,
            lambda t: t.permute(0, 2, 3, 1).exp(),
            lambda t: t.to(memory_format=torch.channels_last).relu(),
            lambda t: torch.cat([t.transpose(0, 1), t.transpose(0, 1)]),
            lambda t: t.transpose(1, 3).softmax(1),
            lambda t: t.transpose(1, 3).sum(2),
            lambda t: t.transpose(1, 3).cumsum(1),
            lambda t: t.transpose(0, 2).sort(1)[0],
            lambda t: t.transpose(0, 2).flip(1),
            lambda t: nn.functional.max_pool2d(t.to(memory_format=torch.channels_last), 2),
            lambda t: nn.functional.conv2d(t, torch.ones(6, 3, 2, 2, device=t.device)),
            lambda t: torch.where(t.transpose(0, 3) > 0, t.transpose(0, 3), 0),
            lambda t: torch.matmul(t, t.transpose(2, 3)),
            lambda t: t.index_select(1, torch.tensor([2, 0], device=t.device)),
            lambda t: t[:, torch.tensor([2, 0], device=t.device)],
            lambda t: nn.functional.layer_norm(t.transpose(2, 3), (4,)),
            lambda t: nn.functional.binary_cross_entropy(
                t.sigmoid().transpose(1, 3), t.sigmoid().transpose(1, 3), reduction="none"
            ),
            lambda t: torch.native_dropout(t.transpose(1, 3), 0.5, True)[0],
            lambda t: t.transpose(1, 3).masked_fill(t.transpose(1, 3) > 0, 3.0),
            lambda t: nn.functional.hardswish(t.transpose(1, 3)[:, :, :, 1:]),
            lambda t: torch.where(t.transpose(0, 3) > 0, t[:1, :, :, :1].transpose(0, 3), 0),
            lambda t: nn.functional.interpolate(t, scale_factor=2),
            lambda t: t.clone(memory_format=torch.channels_last).clone(),
            lambda t: torch.empty_like(t.transpose(1, 2)),
            lambda t: t.var(1, keepdim=True),
        )
        for number, call in enumerate(calls):
            with self.subTest(call=number):
                torch.ocl.manual_seed(9)
                real = call(x)
                with FakeTensorMode() as mode:
                    fake = call(mode.from_tensor(x))
                if number not in (17, 23):  # random, uninitialised
                    close(real, call(x.cpu()))
                self.assertEqual(
                    (real.shape, real.stride(), real.dtype), (fake.shape, fake.stride(), fake.dtype)
                )

    def agree(self, call, *inputs: torch.Tensor) -> None:
        """Real and fake results have the same shapes, types, and strides where a size is above
        1."""

        def described(result):
            tensors = [
                t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)
            ]
            return [
                (t.shape, t.dtype, [s for n, s in zip(t.shape, t.stride()) if n > 1])
                for t in tensors
            ]

        mode = FakeTensorMode()
        with mode:
            fake = call(*map(mode.from_tensor, inputs))
        self.assertEqual(described(call(*inputs)), described(fake))

    def test_strides_of_attention(self) -> None:
        aten = torch.ops.aten
        projected = numbers(2, 5, 3, 8).to("ocl").transpose(1, 2)
        narrow = numbers(2, 5, 3, 6).to("ocl").transpose(1, 2)
        plain = numbers(2, 3, 5, 8).to("ocl")

        def backward(query, key, value):
            out, logsumexp, *_ = aten._scaled_dot_product_fused_attention_overrideable(
                query, key, value
            )
            zero = torch.zeros((), dtype=torch.long)
            saved = (out, logsumexp, None, None, 5, 5, 0.0, False, zero, zero)
            wanted = [True, True, True, False]
            return aten._scaled_dot_product_fused_attention_overrideable_backward(
                torch.ones_like(out), query, key, value, None, wanted, *saved
            )[:3]

        for value in (projected, narrow, plain):
            for key in (projected, plain):
                self.agree(nn.functional.scaled_dot_product_attention, projected, key, value)
                self.agree(backward, projected, key, value)
        real = nn.functional.scaled_dot_product_attention(projected, projected, narrow)
        close(
            real,
            nn.functional.scaled_dot_product_attention(
                projected.cpu(), projected.cpu(), narrow.cpu()
            ),
        )
        model = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0).to("ocl")
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        compiled(numbers(2, 5, 8).to("ocl")).sum().backward()

    def test_strides_of_selections(self) -> None:
        x = numbers(2, 3, 4, 5).to("ocl")
        pick = torch.tensor([1, 0, 1], device="ocl")
        both = torch.tensor([[1, 0], [0, 1]], device="ocl")
        for call in (
            lambda t, i, j: t.permute(3, 1, 0, 2)[:, i],
            lambda t, i, j: t.permute(3, 2, 1, 0)[i],
            lambda t, i, j: t.permute(3, 2, 1, 0)[:, :, j, i[:2]],
            lambda t, i, j: t.permute(2, 0, 1, 3)[j, :, i[:2]],
            lambda t, i, j: t.permute(0, 2, 3, 1)[i],
            lambda t, i, j: t.to(memory_format=torch.channels_last)[:, i],
            lambda t, i, j: t.to(memory_format=torch.channels_last)[i],
            lambda t, i, j: t.transpose(0, 3)[..., None, j],
            lambda t, i, j: t.expand(2, 3, 4, 5)[:, i],
        ):
            self.agree(call, x, pick, both)
            self.assertTrue(
                torch.equal(call(x, pick, both).cpu(), call(x.cpu(), pick.cpu(), both.cpu()))
            )

    def test_strides_in_channels_last(self) -> None:
        aten = torch.ops.aten
        image = numbers(2, 4, 6, 7).to("ocl").to(memory_format=torch.channels_last)
        volume = numbers(2, 3, 4, 6, 4).to("ocl").to(memory_format=torch.channels_last_3d)
        scale = numbers(4).to("ocl").exp()

        def batch_norm_backward(x, _, s):
            return aten.native_batch_norm_backward(
                x.sin(), x, s, None, None, s, s, True, 1e-5, [True, True, True]
            )

        def group_norm_backward(x, _, s):
            stats = s.view(2, 2)
            return aten.native_group_norm_backward(
                x.sin(), x, stats, stats, None, 2, 4, 42, 2, [True, False, False]
            )[0]

        def maxima_backward(_, v, __):
            out, places = aten.max_pool3d_with_indices(v, [2, 2, 2])
            return (
                out,
                places,
                aten.max_pool3d_with_indices_backward(
                    out, v, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, places
                ),
            )

        for number, call in enumerate(
            (
                lambda x, _, s: nn.functional.conv2d(x, s.view(1, 4, 1, 1).expand(3, 4, 2, 2)),
                lambda x, _, s: nn.functional.batch_norm(x, s, s, s, s),
                lambda x, _, s: nn.functional.batch_norm(x, None, None, s, s, True),
                lambda x, _, s: nn.functional.group_norm(x, 2, s, s),
                lambda x, _, s: nn.functional.instance_norm(x),
                batch_norm_backward,
                group_norm_backward,
                lambda x, _, s: nn.functional.adaptive_avg_pool2d(x, 2),
                lambda x, _, s: aten._adaptive_avg_pool2d_backward(
                    nn.functional.adaptive_avg_pool2d(x, 2), x
                ),
                lambda x, _, s: nn.functional.adaptive_max_pool2d(x, 2),
                lambda x, v, s: nn.functional.adaptive_avg_pool3d(v, 2),
                lambda x, v, s: nn.functional.avg_pool3d(v, 2),
                maxima_backward,
                lambda x, _, s: nn.functional.pad(x, (1, 2, 1, 1), mode="reflect"),
                lambda x, _, s: nn.functional.pad(x, (1, 2, 1, 1), mode="replicate"),
                lambda x, _, s: nn.functional.pad(x, (-1, 2, 1, 1), mode="replicate"),
                lambda x, _, s: aten.native_dropout_backward(x, x > 0, 2.0),
            )
        ):
            with self.subTest(call=number):
                # 2.14 promises contiguous group norms, on the CPU as well, where they are not.
                if number != 3 or VERSION != (2, 14):
                    self.agree(call, image, volume, scale)
                want = torch.utils._pytree.tree_leaves(call(image.cpu(), volume.cpu(), scale.cpu()))
                for a, b in zip(
                    torch.utils._pytree.tree_leaves(call(image, volume, scale)), want, strict=True
                ):
                    torch.testing.assert_close(a.cpu(), b, rtol=1e-5, atol=1e-5)

    def test_strides_of_results_that_ATen_resizes(self) -> None:
        x, row = numbers(5, 4).to("ocl").t(), numbers(4, 1).to("ocl")
        calls = (
            lambda a, b: torch.logical_and(a, b),
            lambda a, b: torch.complex(a, b.expand(4, 5)),
            lambda a, b: torch.polar(a, a),
            lambda a, b: nn.functional.huber_loss(a, a * 2, reduction="none"),
            lambda a, b: torch.fft.fft(a),
            lambda a, b: torch.fft.rfftn(a),
            lambda a, b: torch.fft.irfft(a.to(torch.complex64), dim=0),
        )
        for number, call in enumerate(calls):
            with self.subTest(call=number):
                self.agree(call, x, row)
        out = torch.empty(0, device="ocl")
        self.assertEqual(torch.add(x, x, out=out).stride(), (1, 4))
        self.assertEqual(out.cpu().tolist(), (x * 2).cpu().tolist())


class Transforms(unittest.TestCase):
    def both(self, function, *inputs) -> None:
        """Results of `function` on the CPU and on ocl are close."""
        want = torch.utils._pytree.tree_leaves(function(*inputs))
        got = torch.utils._pytree.tree_leaves(function(*(t.to("ocl") for t in inputs)))
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertEqual(a.device.type, "ocl")
            torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-4, atol=1e-5)

    def test_vmap(self) -> None:
        self.both(lambda a, b: vmap(torch.dot)(a, b), numbers(4, 5), numbers(4, 5).flip(0))
        self.both(vmap(lambda a: (a @ a.t()).softmax(0).sum(1)), numbers(3, 4, 2))
        self.both(
            vmap(vmap(lambda a, b: a * b.sin(), (0, None)), (None, 0)), numbers(4), numbers(3)
        )
        self.both(
            vmap(lambda a, i: a.index_select(0, i), (0, None)), numbers(3, 4), torch.tensor([2, 0])
        )
        conv = vmap(lambda x, w: nn.functional.conv2d(x, w), (0, 0))
        self.both(conv, numbers(3, 2, 2, 5, 5), numbers(3, 4, 2, 3, 3))

    def test_vmap_randomness(self) -> None:
        x = torch.zeros(4, 6, device="ocl")
        different = vmap(lambda t: t + torch.rand_like(t), randomness="different")(x)
        same = vmap(lambda t: t + torch.rand_like(t), randomness="same")(x)
        self.assertFalse(torch.equal(different[0].cpu(), different[1].cpu()))
        self.assertTrue(torch.equal(same[0].cpu(), same[1].cpu()))

    def test_grad(self) -> None:
        self.both(grad(lambda x: (x.sin() * x.exp()).sum()), numbers(5))
        self.both(grad(grad(lambda x: (x**3).sin())), torch.tensor(0.7))
        self.both(
            lambda x: vjp(lambda t: t.tanh().cumsum(0), x)[1](numbers(5).to(x.device)), numbers(5)
        )
        self.both(jacrev(lambda x: x.softmax(0)), numbers(5))
        self.both(hessian(lambda x: x.sin().sum() ** 2), numbers(4))

    def test_jvp(self) -> None:
        for call in (
            torch.sin,
            lambda x: x.softmax(1),
            lambda x: x @ x.t(),
            lambda x: nn.functional.layer_norm(x, (4,)),
            lambda x: nn.functional.gelu(x).sum(0),
            lambda x: x.logsumexp(1),
        ):
            self.both(lambda x, c=call: jvp(c, (x,), (x.flip(0),)), numbers(3, 4))

    def test_per_sample_gradients(self) -> None:
        model = Block()

        def loss(parameters, x, y):
            return nn.functional.cross_entropy(
                functional_call(model, parameters, (x[None],)), y[None]
            )

        def run(x, y):
            parameters = {k: v.detach().to(x.device) for k, v in model.named_parameters()}
            return vmap(grad(loss), (None, 0, 0))(parameters, x, y)

        self.both(run, numbers(4, 6), torch.tensor([0, 2, 1, 1]))

    def test_make_fx(self) -> None:
        graph = make_fx(lambda x: torch.relu(x @ x.t()).sum())(numbers(3, 4).to("ocl"))
        close(graph(numbers(3, 4).to("ocl")), torch.relu(numbers(3, 4) @ numbers(3, 4).t()).sum())

    def test_double_backward(self) -> None:
        def run(x):
            x = x.clone().requires_grad_()
            first = torch.autograd.grad((x.sigmoid() ** 2).sum(), x, create_graph=True)[0]
            return torch.autograd.grad((first**2).sum(), x)[0]

        self.both(run, numbers(6))

    def test_forward_mode(self) -> None:
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(
                numbers(4).to("ocl"), torch.ones(4, device="ocl")
            )
            value, tangent = torch.autograd.forward_ad.unpack_dual(dual.exp())
        close(tangent, numbers(4).exp())

    def test_anomaly_names_the_forward_call(self) -> None:
        x = torch.tensor([-1.0], device="ocl", requires_grad=True)
        with (
            torch.autograd.detect_anomaly(check_nan=True),
            self.assertWarns(UserWarning),
            self.assertRaisesRegex(RuntimeError, "SqrtBackward0.*nan"),
        ):
            x.sqrt().sum().backward()


class Jit(unittest.TestCase):
    def test_script_and_trace(self) -> None:
        model = Block()
        x = numbers(4, 6)
        want = model(x)
        traced = torch.jit.trace(model.to("ocl"), x.to("ocl"))
        close(traced(x.to("ocl")), want)


if __name__ == "__main__":
    unittest.main()
