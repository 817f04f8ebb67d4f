"""Recurrent layers and cells: values, gradients of all orders and errors, against torch's CPU in
float64."""

import itertools
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch_ocl  # noqa: F401
from torch import nn
from torch.nn.utils import rnn

# Sums of some dozens of products below 1 in another order, through a dozen steps; 16-bit states are
# rounded at each step, and gradients add up over the steps.
TOLERANCE = {
    torch.float64: {"rtol": 1e-11, "atol": 1e-11},
    torch.float32: {"rtol": 3e-5, "atol": 3e-5},
    torch.float16: {"rtol": 2e-2, "atol": 2e-2},
    torch.bfloat16: {"rtol": 1.3e-1, "atol": 1.3e-1},
}
KINDS: dict[str, Callable[..., nn.RNNBase]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
}
Result = list[torch.Tensor]


def flat(value: Any) -> Result:
    if isinstance(value, rnn.PackedSequence):
        return [value.data]
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in flat(v)]


def weighted(outs: Sequence[torch.Tensor]) -> torch.Tensor:
    """A number that depends on each element in its own way."""
    numbers = (torch.linspace(0.5, 1.5, t.numel(), dtype=torch.float64).view(t.shape) for t in outs)
    return sum(
        ((t * n.to(t.device, t.dtype)).sum() / max(1, t.numel()) ** 0.5)
        for t, n in zip(outs, numbers, strict=True)
    )


def moved(
    module: nn.Module, kind: str, sizes: tuple, options: dict, device: str, dtype
) -> nn.Module:
    other = KINDS[kind](*sizes, **options)
    other.load_state_dict(module.state_dict())
    return other.to(device, dtype)


def run(module: nn.Module, x: torch.Tensor, states: Result, lengths: list[int] | None) -> Result:
    """Outputs, and gradients of input, states and weights."""
    leaves = [x, *states]
    for leaf in leaves:
        leaf.requires_grad_()
    given: Any = x
    if lengths is not None:
        given = rnn.pack_padded_sequence(
            x, torch.tensor(lengths), batch_first=module.batch_first, enforce_sorted=False
        )
    hx = None if not states else states[0] if len(states) == 1 else tuple(states)
    outs = flat(module(given, hx))
    leaves += list(module.parameters())
    return outs + list(torch.autograd.grad(weighted(outs), leaves))


class Layers(unittest.TestCase):
    def check(
        self,
        kind: str,
        sizes: tuple[int, ...] = (5, 7),
        dtype: torch.dtype = torch.float32,
        time: int = 6,
        batch: int | None = 3,
        given: bool = True,
        lengths: list[int] | None = None,
        **options: Any,
    ) -> None:
        torch.manual_seed(1)
        module = KINDS[kind](*sizes, **options).to(dtype)
        shape = [time] if batch is None else [time, batch]
        if options.get("batch_first"):
            shape.reverse()
        x = torch.randn(*shape, sizes[0]).to(dtype)
        count = (sizes[2] if len(sizes) > 2 else 1) * (1 + options.get("bidirectional", False))
        each = [] if batch is None else [batch]
        states = []
        if given:
            states.append(torch.randn(count, *each, options.get("proj_size", sizes[1])).to(dtype))
            if kind == "lstm":
                states.append(torch.randn(count, *each, sizes[1]).to(dtype))
        results = []
        for device, cast in (("cpu", torch.float64), ("ocl", dtype)):
            same = moved(module, kind, sizes, options, device, cast)
            args = [t.clone().to(device, cast) for t in (x, *states)]
            results.append(run(same, args[0], args[1:], lengths))
        for want, got in zip(*results, strict=True):
            self.assertEqual((got.dtype, got.device.type), (dtype, "ocl"))
            self.assertEqual(got.stride(), want.stride())
            torch.testing.assert_close(got.cpu().double(), want, **TOLERANCE[dtype])

    def test_options(self) -> None:
        flags = ("bias", "bidirectional", "batch_first")
        for kind in KINDS:
            for values in itertools.product((True, False), repeat=3):
                for layers, given in ((1, True), (2, True), (3, False)):
                    options = dict(zip(flags, values, strict=True))
                    with self.subTest(kind=kind, layers=layers, given=given, **options):
                        self.check(kind, (5, 7, layers), given=given, **options)

    def test_projections(self) -> None:
        for layers, two_ways, bias in ((1, False, True), (2, True, False), (2, True, True)):
            with self.subTest(layers=layers, two_ways=two_ways, bias=bias):
                options = {"bidirectional": two_ways, "bias": bias, "proj_size": 4}
                self.check("lstm", (5, 7, layers), **options)
                self.check("lstm", (5, 7, layers), lengths=[6, 2, 4], **options)

    def test_types(self) -> None:
        for kind in KINDS:
            for dtype in TOLERANCE:
                with self.subTest(kind=kind, dtype=dtype):
                    self.check(kind, (5, 7, 2), dtype, bidirectional=True)
                    self.check(kind, (5, 7, 2), dtype, lengths=[2, 6, 6], bidirectional=True)

    def test_sizes(self) -> None:
        for kind in KINDS:
            for inputs, hidden, time, batch in (
                (1, 1, 1, 1),
                (3, 17, 1, 2),
                (19, 16, 4, 1),
                (33, 65, 9, 5),
                (8, 100, 12, 33),
                (6, 31, 5, None),
            ):
                with self.subTest(kind=kind, inputs=inputs, hidden=hidden, time=time, batch=batch):
                    self.check(kind, (inputs, hidden), time=time, batch=batch)

    def test_packed(self) -> None:
        for kind in KINDS:
            for two_ways in (False, True):
                for lengths in ([6, 6, 6], [6, 4, 1], [1, 6, 3], [3, 6, 3, 5, 1, 1]):
                    for given in (True, False):
                        with self.subTest(kind=kind, two_ways=two_ways, lengths=lengths):
                            options = {"lengths": lengths, "batch": len(lengths), "given": given}
                            self.check(kind, (5, 7, 2), bidirectional=two_ways, **options)

    def test_random(self) -> None:
        generator = torch.Generator().manual_seed(5)

        def draw(low: int, high: int) -> int:
            return int(torch.randint(low, high + 1, (), generator=generator))

        for _ in range(30):
            kind = list(KINDS)[draw(0, 3)]
            sizes = (draw(1, 20), draw(2, 40), draw(1, 3))
            options: dict[str, Any] = {
                "bias": bool(draw(0, 1)),
                "bidirectional": bool(draw(0, 1)),
                "batch_first": bool(draw(0, 1)),
            }
            if kind == "lstm" and draw(0, 1):
                options["proj_size"] = draw(1, sizes[1] - 1)
            time, batch = draw(1, 9), draw(1, 6)
            lengths = [time] + [draw(1, time) for _ in range(batch - 1)] if draw(0, 1) else None
            with self.subTest(kind=kind, sizes=sizes, time=time, lengths=lengths, **options):
                self.check(kind, sizes, time=time, batch=batch, lengths=lengths, **options)

    def test_without_gradients(self) -> None:
        for kind in KINDS:
            torch.manual_seed(2)
            module = KINDS[kind](5, 7, 2, bidirectional=True)
            x = torch.randn(6, 3, 5)
            want = flat(module(x))
            other = moved(module, kind, (5, 7, 2), {"bidirectional": True}, "ocl", torch.float32)
            for mode in (torch.no_grad, torch.inference_mode):
                with self.subTest(kind=kind, mode=mode.__name__), mode():
                    for a, b in zip(flat(other(x.to("ocl"))), want, strict=True):
                        torch.testing.assert_close(a.cpu(), b, **TOLERANCE[torch.float32])

    def test_frozen_weights_and_parts_of_the_loss(self) -> None:
        # Only some gradients are wanted, and some outputs have none.
        for kind, part in itertools.product(KINDS, range(3)):
            results = []
            for device in ("cpu", "ocl"):
                torch.manual_seed(3)
                module = KINDS[kind](4, 6).to(device)
                module.weight_ih_l0.requires_grad_(False)
                module.bias_hh_l0.requires_grad_(False)
                outs = flat(module(torch.randn(5, 2, 4).to(device)))
                weighted([outs[min(part, len(outs) - 1)]]).backward()
                results.append([p.grad for p in module.parameters()])
            with self.subTest(kind=kind, part=part):
                for want, got in zip(*results, strict=True):
                    self.assertEqual(want is None, got is None)
                    if want is not None:
                        torch.testing.assert_close(got.cpu(), want, **TOLERANCE[torch.float32])

    def test_dropout(self) -> None:
        torch.manual_seed(4)
        module = nn.LSTM(4, 6, 2, dropout=0.5).to("ocl")
        x = torch.randn(5, 2, 4, device="ocl")
        self.assertFalse(torch.equal(module(x)[0], module(x)[0]))
        module.eval()
        self.assertTrue(torch.equal(module(x)[0], module(x)[0]))
        # Everything between the layers is dropped: the second one sees zeros.
        module.train().dropout = 1.0
        second = nn.LSTM(6, 6).to("ocl")
        names = ("weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l")
        second.load_state_dict({f"{n}0": module.get_parameter(f"{n}1") for n in names})
        want = second(torch.zeros(5, 2, 6, device="ocl"))[0]
        torch.testing.assert_close(module(x)[0], want)


class Derivatives(unittest.TestCase):
    def test_second(self) -> None:
        for kind, packed in itertools.product(KINDS, (False, True)):
            results = []
            for device, dtype in (("cpu", torch.float64), ("ocl", torch.float32)):
                torch.manual_seed(6)
                module = KINDS[kind](3, 5, 2, bidirectional=True).to(device, dtype)
                x = torch.randn(4, 2, 3).to(device, dtype).requires_grad_()
                given = rnn.pack_padded_sequence(x, torch.tensor([4, 2])) if packed else x
                outs = flat(module(given))
                leaves = [x, *module.parameters()]
                first = torch.autograd.grad(weighted(outs), leaves, create_graph=True)
                second = torch.autograd.grad(weighted(first), leaves, allow_unused=True)
                results.append([*first, *second])
            with self.subTest(kind=kind, packed=packed):
                for want, got in zip(*results, strict=True):
                    self.assertEqual(want is None, got is None)
                    if want is not None:
                        torch.testing.assert_close(
                            got.detach().cpu().double(), want.detach(), rtol=1e-4, atol=1e-4
                        )

    def test_second_with_dropout(self) -> None:
        # The graph of the second derivative has the same dropped elements.
        torch.manual_seed(7)
        module = nn.LSTM(3, 5, 2, dropout=0.5).to("ocl")
        x = torch.randn(4, 2, 3, device="ocl", requires_grad=True)
        loss = weighted(flat(module(x)))
        (plain,) = torch.autograd.grad(loss, x, retain_graph=True)
        (other,) = torch.autograd.grad(loss, x, create_graph=True)
        torch.testing.assert_close(plain, other, rtol=1e-5, atol=1e-6)

    def test_forward_mode(self) -> None:
        for kind in KINDS:
            results = []
            for device, dtype in (("cpu", torch.float64), ("ocl", torch.float32)):
                torch.manual_seed(8)
                module = KINDS[kind](3, 5, 2).to(device, dtype)
                x, tangent = (torch.randn(4, 2, 3).to(device, dtype) for _ in range(2))
                with torch.autograd.forward_ad.dual_level():
                    outs = flat(module(torch.autograd.forward_ad.make_dual(x, tangent)))
                    results.append([torch.autograd.forward_ad.unpack_dual(t).tangent for t in outs])
            with self.subTest(kind=kind):
                for want, got in zip(*results, strict=True):
                    torch.testing.assert_close(
                        got.detach().cpu().double(), want.detach(), **TOLERANCE[torch.float32]
                    )

    def test_transforms(self) -> None:
        torch.manual_seed(9)
        module = nn.GRU(3, 5)
        x = torch.randn(4, 2, 3)

        def loss(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch.func.functional_call(module, weights, (x,))[0].square().sum()

        weights = {k: v.detach() for k, v in module.named_parameters()}
        want = torch.func.grad(loss)(x, weights)
        got = torch.func.grad(loss)(x.to("ocl"), {k: v.to("ocl") for k, v in weights.items()})
        torch.testing.assert_close(got.cpu(), want, **TOLERANCE[torch.float32])


class Calls(unittest.TestCase):
    def test_autocast(self) -> None:
        for kind, dtype in itertools.product(KINDS, (torch.float16, torch.bfloat16)):
            torch.manual_seed(10)
            module = KINDS[kind](5, 7, 2)
            x = torch.randn(6, 3, 5)
            want = run(module.double(), x.double(), [], None)
            module = module.float().to("ocl")
            with torch.autocast("ocl", dtype):
                outs = flat(module(x.to("ocl")))
            with self.subTest(kind=kind, dtype=dtype):
                self.assertEqual({t.dtype for t in outs}, {dtype})
                grads = torch.autograd.grad(weighted(outs), list(module.parameters()))
                self.assertEqual({g.dtype for g in grads}, {torch.float32})
                for a, b in zip(
                    [*outs, *grads], [*want[: len(outs)], *want[len(outs) + 1 :]], strict=True
                ):
                    torch.testing.assert_close(
                        a.detach().cpu().double(), b.detach(), **TOLERANCE[dtype]
                    )

    def test_layouts(self) -> None:
        torch.manual_seed(11)
        module = nn.LSTM(4, 6)
        x = torch.randn(2, 4, 5).permute(2, 0, 1)
        want = module(x)[0].detach()
        module = module.to("ocl")
        strided = torch.empty(12, 4, device="ocl").t()[:, ::2]
        self.assertEqual(strided.shape, (4, 6))
        for given in (x.to("ocl"), torch.randn(5, 2, 8, device="ocl")[..., ::2].copy_(x)):
            torch.testing.assert_close(module(given)[0].cpu(), want, **TOLERANCE[torch.float32])
        h = torch.randn(1, 1, 6)
        state = h.expand(1, 2, 6)
        ours = module(x.to("ocl"), (state.to("ocl"), h.to("ocl").expand(1, 2, 6)))[0]
        theirs = module.cpu()(x, (state, state))[0]
        torch.testing.assert_close(ours.cpu(), theirs, **TOLERANCE[torch.float32])

    def test_no_batch(self) -> None:
        for kind in KINDS:
            outcomes = []
            for device in ("cpu", "ocl"):
                module = KINDS[kind](4, 6).to(device)
                try:
                    outcomes.append(
                        [t.shape for t in flat(module(torch.randn(5, 0, 4).to(device)))]
                    )
                except RuntimeError as error:
                    outcomes.append(str(error))
            self.assertEqual(*outcomes)

    def test_errors(self) -> None:
        w = [torch.randn(24, 4), torch.randn(24, 6), torch.randn(24), torch.randn(24)]
        h = torch.zeros(1, 2, 6)
        x = torch.randn(5, 2, 4)
        rest = (True, 1, 0.0, False, False, False)
        calls = {
            "states": (x, [h], w),
            "weights": (x, [h, h], w[:3]),
            "input": (torch.randn(5, 2, 3), [h, h], w),
            "hidden": (x, [h[..., :5], h], w),
            "type": (x.double(), [h, h], w),
            "batch": (x, [h[:, :1].repeat(1, 3, 1), h], w),
        }
        for name, (a, states, weights) in calls.items():
            outcomes = []
            for device in ("cpu", "ocl"):
                args = [
                    a.to(device),
                    [t.to(device) for t in states],
                    [t.to(device) for t in weights],
                ]
                try:
                    # oneDNN's layers do not check all of it.
                    with torch.backends.mkldnn.flags(enabled=False):
                        torch.lstm(*args, *rest)
                    outcomes.append(None)
                except (RuntimeError, ValueError) as error:
                    outcomes.append(type(error))
            with self.subTest(call=name):
                self.assertIsNotNone(outcomes[0])
                self.assertEqual(*outcomes)


class Cells(unittest.TestCase):
    def test_cells(self) -> None:
        for kind, bias, dtype in itertools.product(
            (nn.LSTMCell, nn.GRUCell, nn.RNNCell), (True, False), TOLERANCE
        ):
            results = []
            for device, cast in (("cpu", torch.float64), ("ocl", dtype)):
                torch.manual_seed(12)
                cell = kind(5, 19, bias=bias).to(dtype).to(device, cast)
                x = torch.randn(3, 5).to(dtype).to(device, cast).requires_grad_()
                states = [torch.randn(3, 19).to(dtype).to(device, cast).requires_grad_()]
                if kind is nn.LSTMCell:
                    states.append(torch.randn(3, 19).to(dtype).to(device, cast).requires_grad_())
                outs = flat(cell(x, tuple(states) if len(states) > 1 else states[0]))
                leaves = [x, *states, *cell.parameters()]
                results.append([*outs, *torch.autograd.grad(weighted(outs), leaves)])
            with self.subTest(kind=kind.__name__, bias=bias, dtype=dtype):
                for want, got in zip(*results, strict=True):
                    torch.testing.assert_close(
                        got.detach().cpu().double(), want.detach(), **TOLERANCE[dtype]
                    )

    def test_one_gradient(self) -> None:
        for part in range(2):
            results = []
            for device in ("cpu", "ocl"):
                torch.manual_seed(13)
                cell = nn.LSTMCell(5, 7).to(device)
                outs = cell(torch.randn(3, 5).to(device))
                results.append(torch.autograd.grad(weighted([outs[part]]), list(cell.parameters())))
            for want, got in zip(*results, strict=True):
                torch.testing.assert_close(got.cpu(), want, **TOLERANCE[torch.float32])


if __name__ == "__main__":
    unittest.main()
