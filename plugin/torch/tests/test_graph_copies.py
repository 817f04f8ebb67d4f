"""Graphed modules that are copied, saved, recorded again or misused."""

from __future__ import annotations

import copy
import io
import pickle
import unittest
import warnings

import running
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from graph_case import Case, Elsewhere, mlp
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode


def linear() -> tuple[nn.Module, torch.Tensor]:
    net = nn.Linear(2, 1, bias=False).to("ocl")
    torch.ocl.make_graphed_callables(net, (torch.zeros(1, 2, device="ocl"),))
    return net, torch.ones(1, 2, device="ocl")


class Copies(Elsewhere, Case):
    def check_copy(self, net: nn.Module, other: nn.Module, x: torch.Tensor) -> None:
        self.assertIs(type(other), nn.Linear)
        wanted = net(x).detach()
        with torch.no_grad():
            other.weight.zero_()
        for mode in (True, False):
            self.same(other.train(mode)(x), torch.zeros(1, 1))
        self.same(net(x), wanted)

    def test_copies_compute_with_their_own(self) -> None:
        net, x = linear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.check_copy(net, copy.deepcopy(net), x)
            self.check_copy(net, copy.deepcopy(copy.deepcopy(net)), x)
            outer = nn.ModuleDict({"inner": net})
            self.check_copy(net, copy.deepcopy(outer)["inner"], x)

    def test_averages(self) -> None:
        net, x = linear()
        average = torch.optim.swa_utils.AveragedModel(net)
        with torch.no_grad():
            net.weight.copy_(torch.tensor([[1.0, 2.0]]))
        average.update_parameters(net)
        with torch.no_grad():
            net.weight.copy_(torch.tensor([[3.0, 4.0]]))
        average.update_parameters(net)
        self.same(average(x), torch.tensor([[5.0]]))
        self.same(net(x), torch.tensor([[7.0]]))

    def test_shallow_copies_have_their_own_mode(self) -> None:
        net = nn.Dropout(0.5).to("ocl")
        x = torch.ones(64, device="ocl")
        torch.ocl.make_graphed_callables(net, (x,))
        other = copy.copy(net)
        other.eval()
        self.same(other(x), x)
        self.assertFalse(torch.equal(net(x), x))

    def test_replicas(self) -> None:
        net, x = linear()
        replica = net._replicate_for_data_parallel()
        replica.weight, replica.bias = net.weight.detach() * 0, None
        self.same(replica(x), torch.zeros(1, 1))

    def test_saved_modules(self) -> None:
        net, x = linear()
        wanted = net(x).detach()
        file = io.BytesIO()
        torch.save(net, file)
        file.seek(0)
        loaded = [torch.load(file, weights_only=False)]
        loaded += [
            pickle.loads(pickle.dumps(net, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ]
        for other in loaded:
            self.same(other(x), wanted)
            self.check_copy(net, other, x)

    def test_a_forward_of_the_object_itself(self) -> None:
        """As accelerate's hooks set it."""
        net, x = mlp(), torch.randn(8, 16, device="ocl")
        plain = copy.deepcopy(net)
        own = net.forward
        net.forward = lambda x: own(x) * 2
        torch.ocl.make_graphed_callables(net, (x,))
        self.assertNotIn("forward", vars(net))
        self.same(net(x).detach(), plain(x).detach() * 2)
        self.assertEqual(net._torch_ocl_recorded.forward.info()["launches"] > 0, True)
        self.same(net.eval()(x).detach(), plain(x).detach() * 2)

    def test_recorded_again(self) -> None:
        net, x = linear()
        net.weight = nn.Parameter(torch.tensor([[3.0, 4.0]], device="ocl"))
        with self.assertWarnsRegex(RuntimeWarning, "weight is not what it was"):
            self.same(net(x).detach(), torch.tensor([[7.0]]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.ocl.make_graphed_callables(net, (x,))
            self.same(net(x).detach(), torch.tensor([[7.0]]))
            with torch.no_grad():
                net.weight.zero_()
            self.same(net(x).detach(), torch.zeros(1, 1))
        self.assertEqual(type(net).__mro__[1], nn.Linear)

    def test_within_another_recording(self) -> None:
        net, x = linear()
        outer = nn.Sequential(net, nn.Tanh()).to("ocl")
        y = net(x).detach().tanh()
        torch.ocl.make_graphed_callables(outer, (x,))
        self.same(outer(x).detach(), y)
        outer(x).sum().backward()
        self.same(net.weight.grad, ((1 - y**2) * x))

    def test_compiled(self) -> None:
        net, x = linear()
        compiled = torch.compile(net, backend="aot_eager")
        for factor in (1, 2, 3):
            net.zero_grad()
            y = compiled(x * factor)
            y.sum().backward()
            self.same(y.detach(), (net.weight.detach() * x * factor).sum(1, keepdim=True))
            self.same(net.weight.grad, x * factor)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.same(net(x).detach(), net.weight.detach().sum(1, keepdim=True))

    def test_traced(self) -> None:
        """What looks on sees the module's own operators."""
        net, x = linear()
        wanted = (net.weight.detach() * x * 3).sum(1, keepdim=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            traced = [torch.jit.trace(net, x), make_fx(net)(x)]
            with FlopCounterMode(display=False) as flops:
                net(x)
        for call in traced:
            self.same(call(x * 3).detach(), wanted)
        self.assertEqual(flops.get_total_flops(), 4)

    def test_the_samples_are_the_callers(self) -> None:
        x = torch.ones(3, device="ocl")
        call = torch.ocl.make_graphed_callables(lambda a, b: a - b, (x, x))
        self.same(call(x * 5, x), torch.full((3,), 4.0))
        self.same(x, torch.ones(3))

    def test_results_and_arguments_of_several(self) -> None:
        x = torch.ones(3, device="ocl")
        call = torch.ocl.make_graphed_callables(lambda a: (a, a + 1, (a * 2).int()), (x,))
        first, second = call(x), call(x * 3)
        for result, wanted in zip((*first, *second), (1, 2, 2, 3, 4, 6), strict=True):
            self.same(result.float(), torch.full((3,), float(wanted)))


class Refusals(Case):
    def test_a_second_backward_pass(self) -> None:
        net, x = linear()
        loss = net(x).sum()
        loss.backward()
        with self.assertRaisesRegex(RuntimeError, "second time"):
            loss.backward()

    def test_a_parameter_changed_before_the_backward_pass(self) -> None:
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to("ocl")
        plain = copy.deepcopy(net)
        torch.ocl.make_graphed_callables(net, (torch.zeros(1, 2, device="ocl"),))
        x = torch.ones(1, 2, device="ocl")
        for one in (net, plain):
            loss = one(x).sum()
            with torch.no_grad():
                one[0].weight.add_(1)  # is not saved, as the argument needs no gradient
                one[1].bias.add_(1)
            loss.backward()
            loss = one(x).sum()
            with torch.no_grad():
                one[1].weight.add_(1)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()

    def test_double_backward(self) -> None:
        net, x = linear()
        with self.assertRaisesRegex(RuntimeError, "differentiated twice"):
            torch.autograd.grad(net(x).sum(), net.weight, create_graph=True)

    def test_gradients_that_the_recording_has_not(self) -> None:
        net, x = linear()
        with self.assertRaisesRegex(TypeError, "requires a gradient"):
            net(x.requires_grad_())
        with torch.no_grad():
            inference = nn.Linear(2, 1).to("ocl")
            torch.ocl.make_graphed_callables(inference, (x.detach(),))
            wanted = inference(x).clone()
        with self.assertWarnsRegex(RuntimeWarning, "without gradients"):
            y = inference(x.detach())
        self.same(y.detach(), wanted)
        self.assertTrue(y.requires_grad)

    def test_tensors_from_elsewhere(self) -> None:
        net, x = nn.Linear(2, 1).to("ocl"), torch.zeros(1, 2, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "neither an argument nor a parameter"):
            torch.ocl.make_graphed_callables(lambda a: net(a), (x,))
        with self.assertRaisesRegex(TypeError, "are on ocl, not cpu"):
            torch.ocl.make_graphed_callables(net, (x.cpu(),))
        with self.assertRaisesRegex(ValueError, "twice"):
            torch.ocl.make_graphed_callables((net, net), ((x,), (x,)))

    def test_changes_that_replays_would_not_do(self) -> None:
        x = torch.zeros(3, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "changes an argument in place"):
            torch.ocl.make_graphed_callables(lambda a: a.add_(1), (x,))

        class Counts(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("mean", torch.zeros(3, device="ocl"))

            def forward(self, x):
                self.mean = self.mean * 0.9 + x
                return x - self.mean

        with self.assertRaisesRegex(RuntimeError, "replaces its buffer mean"):
            torch.ocl.make_graphed_callables(Counts(), (x,))


class Threads(Case):
    def test_threads_and_streams(self) -> None:
        net, _ = linear()
        with torch.no_grad():
            net.weight.fill_(1)
        wrong = []

        def work(number: int) -> None:
            x = torch.full((1, 2), float(number), device="ocl")
            stream = torch.ocl.Stream() if number % 2 else None
            torch.ocl.synchronize()
            with torch.ocl.stream(stream), torch.no_grad():
                results = [net(x) for _ in range(50)]
            torch.ocl.synchronize()
            wrong.extend(r.item() for r in results if r.item() != 2 * number)

        running.in_threads(work, range(1, 5))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
