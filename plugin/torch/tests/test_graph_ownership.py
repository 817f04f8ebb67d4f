"""Graphed modules in procedures of training: what leaves a graph is the caller's own.

Each procedure runs three times: replayed, called plainly on ocl, and on the CPU.
"""

from __future__ import annotations

import copy
import unittest
import warnings
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from graph_case import Case, Elsewhere
from torch import nn

Procedure = Callable[[nn.Module, Callable[..., torch.Tensor]], list[torch.Tensor]]
WAITS = "waits for its backward pass"


class Net(nn.Module):
    """Saves parameters, its arguments, products of both, and results for the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.first(x).tanh())).sigmoid()


def gradients(net: nn.Module) -> list[torch.Tensor]:
    return [p.grad for p in net.parameters()]


def batches(device: torch.device, count: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(3, 4, generator=generator).to(device) for _ in range(count)]


def device_of(net: nn.Module) -> torch.device:
    return next(net.parameters()).device


# ---- Procedures. Each gives the tensors that are compared; `call` is the module, or a graph of it.


def micro_batches(count: int) -> Procedure:
    def run(net, call):
        for x in batches(device_of(net), count):
            call(x).square().sum().backward()
        return gradients(net)

    return run


def forward_between_backward_and_step(net, call):
    x, other, _ = batches(device_of(net))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    call(x).square().sum().backward()
    with torch.no_grad():
        call(other)
    kept = [g.clone() for g in gradients(net)]
    call(other)
    optimizer.step()
    return [*kept, *gradients(net), *net.parameters()]


def clipping_with_adam(net, call):
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    norms = []
    for _ in range(2):
        for x in batches(device_of(net)):
            call(x).square().sum().backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.1))
        optimizer.step()
        optimizer.zero_grad()
    return [*norms, *net.parameters()]


def scaled(net, call):
    scaler = torch.amp.GradScaler(device_of(net).type, init_scale=8.0, growth_interval=1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x in batches(device_of(net)):
        optimizer.zero_grad()
        scaler.scale(call(x).square().sum()).backward()
        call(x)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return [torch.tensor(scaler.get_scale()), *net.parameters()]


def called_twice_before_backward(net, call):
    x, other, _ = batches(device_of(net))
    (call(x).sum() - call(other).square().sum()).backward()
    return gradients(net)


def backward_in_the_other_order(net, call):
    x, other, _ = batches(device_of(net))
    first, second = call(x).sum(), call(other).square().sum()
    first.backward()
    kept = [g.clone() for g in gradients(net)]
    second.backward()
    return [*kept, *gradients(net)]


def evaluation_before_backward(net, call):
    x, other, _ = batches(device_of(net))
    y = call(x)
    with torch.no_grad():
        z = call(other)
    y.square().sum().backward()
    return [z, *gradients(net)]


def second_backward(net, call):
    x, other, _ = batches(device_of(net))
    loss = call(x).square().sum()
    loss.backward(retain_graph=True)
    call(other)
    loss.backward()
    return gradients(net)


def two_losses(net, call):
    y = call(batches(device_of(net))[0])
    y.sum().backward(retain_graph=True)
    y.square().sum().backward()
    return gradients(net)


def kept_hook_gradients(net, call):
    parameters, given = list(net.parameters()), batches(device_of(net))
    kept = [[] for _ in (*parameters, *given)]
    for tensor, own in zip((*parameters, *given), kept, strict=True):
        tensor.requires_grad_().register_hook(own.append)
    for x in given:
        call(x).square().sum().backward()
    return [gradient for own in kept for gradient in own]


def given_gradients(net, call):
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    own = gradients(net)
    for x in batches(device_of(net)):
        call(x).square().sum().backward()
    assert all(a is b for a, b in zip(own, gradients(net), strict=True))
    return own


def gradients_by_function(net, call):
    found = []
    for x in batches(device_of(net)):
        x.requires_grad_()
        found += torch.autograd.grad(call(x).square().sum(), [x, *net.parameters()])
    return found


def inputs_that_are_views(net, call):
    """The gradient passes a view before it is kept."""
    leaf = torch.ones(12, device=device_of(net), requires_grad=True)
    call(leaf.view(3, 4)).square().sum().backward()
    kept = leaf.grad
    call(batches(device_of(net))[0].requires_grad_()).sum().backward()
    return [kept]


def kept_results(net, call):
    results = []
    with torch.no_grad():
        for x in batches(device_of(net)):
            results.append(call(x))
    return results


def results_changed_in_place(net, call):
    y = call(batches(device_of(net))[0])
    loss = y.square().sum()
    loss.backward()
    with torch.no_grad():
        y.zero_()
        z = call(batches(device_of(net))[1])
    return [y, z, *gradients(net)]


def changed_input(net, call):
    """The next forward pass writes the recording's own input, never the caller's."""
    given = batches(device_of(net))
    for x in given:
        call(x).sum().backward()
    return [*given, *gradients(net)]


def frozen_later(net, call):
    net.first.requires_grad_(False)
    call(batches(device_of(net))[0]).sum().backward()
    return [net.last.weight.grad, net.norm.weight.grad]


def assigned_parameters(net, call):
    state = {k: v.clone() * 2 for k, v in net.state_dict().items()}
    net.load_state_dict(state, assign=True)
    y = call(batches(device_of(net))[0])
    y.sum().backward()
    return [y, *gradients(net)]


def loaded_parameters(net, call):
    net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})
    y = call(batches(device_of(net))[0])
    y.sum().backward()
    return [y, *gradients(net)]


def replaced_data(net, call):
    net.first.weight.data = net.first.weight.data * 3
    return [call(batches(device_of(net))[0])]


def transposed_data(net, call):
    """The same address and shape, other strides."""
    square = torch.arange(16.0, device=device_of(net)).view(4, 4) / 9
    net.first.weight = nn.Parameter(torch.cat([square, square]))
    net.first.weight.data = square.t().repeat(2, 1)
    return [call(batches(device_of(net))[0])]


def parametrized(net, call):
    class Half(nn.Module):
        def forward(self, w):
            return w / 2

    nn.utils.parametrize.register_parametrization(net.last, "weight", Half())
    y = call(batches(device_of(net))[0])
    y.sum().backward()
    return [y, net.first.weight.grad, net.last.parametrizations.weight.original.grad]


def replaced_buffer(net, call):
    net.norm.running_mean = torch.ones_like(net.norm.running_mean)
    call(batches(device_of(net))[0])
    return [net.norm.running_mean]


def replaced_submodule(net, call):
    torch.manual_seed(5)
    net.last = nn.Linear(8, 2).to(device_of(net))
    return [call(batches(device_of(net))[0])]


def submodule_in_another_mode(net, call):
    net.norm.eval()
    return [call(batches(device_of(net))[0]), net.norm.running_mean]


def functional_call(net, call):
    x = batches(device_of(net))[0]
    weights = {k: p.detach() * 2 for k, p in net.named_parameters()}
    return [torch.func.functional_call(call, weights, (x,)), call(x)]


def other_type(net, call):
    x = batches(device_of(net))[0]
    with torch.autocast(device_of(net).type, torch.bfloat16):
        y = call(x)
    return [y.float()]


def unfrozen(net, call):
    net.first.weight.requires_grad_(True)
    call(batches(device_of(net))[0]).sum().backward()
    return gradients(net)


REPLAYED = {
    "two micro-batches": micro_batches(2),
    "three micro-batches": micro_batches(3),
    "given gradients": given_gradients,
    "gradients by torch.autograd.grad": gradients_by_function,
    "kept hook gradients": kept_hook_gradients,
    "a forward pass between backward and step": forward_between_backward_and_step,
    "clipping with Adam": clipping_with_adam,
    "GradScaler": scaled,
    "inputs that are views": inputs_that_are_views,
    "kept results": kept_results,
    "results changed in place": results_changed_in_place,
    "changed input": changed_input,
    "two losses": two_losses,
    "loaded parameters": loaded_parameters,
}
WAITING = {
    "called twice": called_twice_before_backward,
    "backward in the other order": backward_in_the_other_order,
    "evaluation before backward": evaluation_before_backward,
    "second backward": second_backward,
}
DIFFERENT = {
    "assigned parameters": (assigned_parameters, "first.weight"),
    "replaced data": (replaced_data, "first.weight"),
    "transposed data": (transposed_data, "first.weight"),
    "parametrized": (parametrized, "modules of 'last'"),
    "replaced buffer": (replaced_buffer, "norm.running_mean"),
    "replaced submodule": (replaced_submodule, "last"),
    "a submodule in another mode": (submodule_in_another_mode, "the mode of 'norm'"),
    "functional_call": (functional_call, "first.weight"),
    "frozen later": (frozen_later, "first.weight"),
    "autocast": (other_type, "autocast"),
}


class Ownership(Elsewhere, Case):
    def three(self, procedure: Procedure, warns: str = "", make: Callable = Net) -> None:
        net = make()
        there = copy.deepcopy(net).to("ocl")
        plain = copy.deepcopy(there)
        x = torch.zeros(3, 4, device="ocl", requires_grad=True)
        state = {k: v.clone() for k, v in there.state_dict().items()}
        call = torch.ocl.make_graphed_callables(there, (x,))
        there.load_state_dict(state)  # runs that warm up have moved the statistics
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mine = procedure(there, call)
        told = [str(w.message) for w in caught if "without its graphs" in str(w.message)]
        self.assertEqual(len(told), 1 if warns else 0, told)
        self.assertIn(warns, "".join(told))
        eager, wanted = procedure(plain, plain), procedure(net, net)
        self.assertGreater(len(mine), 0)
        for a, b, c in zip(mine, eager, wanted, strict=True):
            self.same(a.detach(), b.detach())
            # 2e-2: bfloat16 rounds to 1/256; else a few float32 operations.
            bound = 2e-2 if procedure is other_type else 1e-4
            torch.testing.assert_close(a.detach().cpu(), c.detach(), rtol=bound, atol=bound)

    def test_replayed(self) -> None:
        for name, procedure in REPLAYED.items():
            with self.subTest(name):
                self.three(procedure)

    def test_calls_before_a_backward_pass(self) -> None:
        for name, procedure in WAITING.items():
            with self.subTest(name):
                self.three(procedure, WAITS)

    def test_what_was_replaced(self) -> None:
        for name, (procedure, text) in DIFFERENT.items():
            with self.subTest(name):
                self.three(procedure, text)

    def test_a_parameter_that_is_trained_later(self) -> None:
        def make() -> nn.Module:
            net = Net()
            net.first.weight.requires_grad_(False)
            return net

        self.three(unfrozen, "first.weight", make)

    def test_launches(self) -> None:
        """A call adds one launch for its argument and one for its result; a backward pass one for
        the result's gradient and one for all that leave."""
        net = Net().to("ocl")
        x = torch.zeros(3, 4, device="ocl")
        call = torch.ocl.make_graphed_callables(net, (x,))
        call(x).backward(torch.ones(3, 2, device="ocl"))

        def launches(work: Callable[[], object]) -> int:
            before = torch.ocl.counters()["launches"]
            work()
            return torch.ocl.counters()["launches"] - before

        recorded = call._torch_ocl_recorded
        net.zero_grad()
        one = torch.ones(3, 2, device="ocl")
        results = []
        forward = launches(lambda: results.append(call(x)))
        self.assertLessEqual(forward - recorded.forward.info()["launches"], 2)
        backward = launches(lambda: results[0].backward(one))
        self.assertLessEqual(backward - recorded.backward.info()["launches"], 2)


class Several(Case):
    """Callables of one recording, called in any order."""

    def test_orders(self) -> None:
        def run(first, second, order):
            device = device_of(first)
            a, b, _ = batches(device)
            losses = [first(a).square().sum(), second(b).square().sum()]
            for i in order:
                losses[i].backward()
            first(b).sum().backward()
            return [*gradients(first), *gradients(second)]

        for order in ((0, 1), (1, 0)):
            with self.subTest(order):
                nets = [Net().to("ocl"), Net().to("ocl")]
                plain = copy.deepcopy(nets)
                x = torch.zeros(3, 4, device="ocl")
                graphed = torch.ocl.make_graphed_callables(tuple(nets), ((x,), (x,)))
                for a, b in zip(run(*graphed, order), run(*plain, order), strict=True):
                    self.same(a, b)

    def test_one_waits_while_the_other_goes_on(self) -> None:
        def run(first, second):
            a, b, c = batches(device_of(first))
            loss = second(a).square().sum()
            for x in (b, c):
                first(x).sum().backward()
            loss.backward()
            return [*gradients(first), *gradients(second)]

        nets = [Net().to("ocl"), Net().to("ocl")]
        plain = copy.deepcopy(nets)
        x = torch.zeros(3, 4, device="ocl")
        graphed = torch.ocl.make_graphed_callables(tuple(nets), ((x,), (x,)))
        for a, b in zip(run(*graphed), run(*plain), strict=True):
            self.same(a, b)


if __name__ == "__main__":
    unittest.main()
