"""Modules and their parameters on ocl: moving, tying, copying, saving, checkpointing."""

import copy
import io
import pathlib
import pickle
import tempfile
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

try:
    import safetensors.torch as safetensors
except ImportError:
    safetensors = None


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens).tanh())


def network() -> nn.Sequential:
    torch.manual_seed(20)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))


def equal(test: unittest.TestCase, ours: nn.Module, theirs: nn.Module) -> None:
    mine, others = ours.state_dict(), theirs.state_dict()
    test.assertEqual(list(mine), list(others))
    for key, value in others.items():
        test.assertTrue(torch.equal(mine[key].cpu(), value.cpu()), key)


class Moving(unittest.TestCase):
    def test_parameters_stay_the_same_objects(self) -> None:
        model = network()
        before = list(model.parameters())
        model(torch.randn(4, 5)).square().sum().backward()
        grads = [p.grad.clone() for p in before]
        self.assertIs(model.to("ocl"), model)
        for old, new, grad in zip(before, model.parameters(), grads):
            self.assertIs(old, new)
            self.assertEqual((new.device.type, new.grad.device.type), ("ocl", "ocl"))
            self.assertTrue(new.is_leaf and new.requires_grad)
            self.assertTrue(torch.equal(new.grad.cpu(), grad))
        self.assertEqual(model[1].running_mean.device.type, "ocl")
        equal(self, model.cpu(), network_after(model))
        self.assertEqual({p.device.type for p in model.parameters()}, {"cpu"})

    def test_optimizer_made_before_the_move(self) -> None:
        results = []
        for device in ("cpu", "ocl"):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model.to(device)
            x = torch.linspace(-1, 1, 20).view(4, 5).to(device)
            model(x).square().sum().backward()
            optimizer.step()
            results.append([p.detach().cpu() for p in model.parameters()])
        for a, b in zip(*results):
            torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6)

    def test_backward_before_and_after(self) -> None:
        # The gradient accumulator of the CPU parameter must not take ocl's gradient.
        model = nn.Linear(3, 2)
        model(torch.ones(1, 3)).sum().backward()
        model.to("ocl")
        model.zero_grad()
        model(torch.full((1, 3), 2.0, device="ocl")).sum().backward()
        self.assertEqual(model.weight.grad.cpu().tolist(), [[2.0] * 3] * 2)

    def test_ties_hold(self) -> None:
        model = Tied().to("ocl")
        self.assertIs(model.head.weight, model.embedding.weight)
        self.assertEqual(len(list(model.parameters())), 1)
        reference = Tied()
        reference.load_state_dict(model.state_dict())
        tokens = torch.tensor([[1, 4, 4], [0, 10, 7]])
        for m, device in ((model, "ocl"), (reference, "cpu")):
            m(tokens.to(device)).square().sum().backward()
        torch.testing.assert_close(
            model.head.weight.grad.cpu(), reference.head.weight.grad, rtol=1e-5, atol=1e-6
        )
        self.assertIs(model.cpu().head.weight, model.embedding.weight)

    def test_ties_hold_with_swapping(self) -> None:
        torch.__future__.set_swap_module_params_on_conversion(True)
        self.addCleanup(torch.__future__.set_swap_module_params_on_conversion, False)
        model = Tied().to("ocl")
        self.assertIs(model.head.weight, model.embedding.weight)
        self.assertEqual(model.head.weight.device.type, "ocl")

    def test_data(self) -> None:
        tensor = torch.ones(3)
        tensor.data = torch.full((2,), 7.0, device="ocl")
        self.assertEqual((tensor.device.type, tensor.shape), ("ocl", (2,)))
        self.assertEqual((tensor * 2).tolist(), [14, 14])
        tensor.data = torch.zeros(4)
        self.assertEqual((tensor.device.type, tensor.tolist()), ("cpu", [0] * 4))
        with self.assertRaisesRegex(RuntimeError, "incompatible tensor type"):
            tensor.data = torch.eye(2).to_sparse()
        with self.assertRaisesRegex(RuntimeError, "incompatible tensor type"):
            torch.ones(2, device="ocl").data = torch.eye(2).to_sparse()

    def test_types_and_places(self) -> None:
        model = network().to("ocl", torch.float16)
        self.assertEqual(model[0].weight.dtype, torch.float16)
        self.assertEqual(model.float()[0].weight.dtype, torch.float32)
        with torch.device("ocl"):
            self.assertEqual(nn.Linear(2, 2).weight.device.type, "ocl")
        self.assertEqual(
            nn.Linear(2, 2, device="meta").to_empty(device="ocl").weight.device.type, "ocl"
        )
        self.assertEqual(network().ocl()[0].weight.device.type, "ocl")
        torch.set_default_device("ocl")
        self.addCleanup(torch.set_default_device, None)
        self.assertEqual(torch.zeros(2).device.type, "ocl")


def network_after(model: nn.Module) -> nn.Module:
    """A CPU network with the same numbers."""
    twin = network()
    twin.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
    return twin


class Copying(unittest.TestCase):
    def test_deepcopy_and_pickle(self) -> None:
        model = Tied().to("ocl")
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            equal(self, twin, model)
            self.assertIs(twin.head.weight, twin.embedding.weight)
            self.assertIsInstance(twin.head.weight, nn.Parameter)
            self.assertEqual(twin.head.weight.device, torch.device("ocl:0"))
            with torch.no_grad():
                twin.head.weight.zero_()
            self.assertGreater(model.head.weight.abs().sum().item(), 0)

    def test_optimizer_state(self) -> None:
        # Training goes on from a saved state as if it had not stopped.
        x = torch.linspace(-1, 1, 20).view(4, 5).to("ocl")

        def step(model, optimizer) -> None:
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()

        model = network().to("ocl")
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            step(model, optimizer)
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        saved = torch.load(file, map_location="cpu", weights_only=True)
        twin = network().to("ocl")
        twin.load_state_dict(saved["model"])
        again = torch.optim.Adam(twin.parameters(), lr=0.5)
        again.load_state_dict(saved["optimizer"])
        for m, o in ((model, optimizer), (twin, again)):
            step(m, o)
        equal(self, twin, model)

    def test_map_location(self) -> None:
        model = network().to("ocl")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.pt"
            torch.save(model.state_dict(), path)
            for place, kind in (
                ("cpu", "cpu"),
                ("ocl", "ocl"),
                (None, "ocl"),
                (torch.device("ocl:0"), "ocl"),
                ({"ocl:0": "cpu"}, "cpu"),
                (lambda s, _: s, "cpu"),
                ("meta", "meta"),
            ):
                with self.subTest(map_location=place):
                    loaded = torch.load(path, map_location=place, weights_only=True)
                    self.assertEqual({v.device.type for v in loaded.values()}, {kind})
                    if kind != "meta":
                        for key, value in model.state_dict().items():
                            self.assertTrue(torch.equal(loaded[key].cpu(), value.cpu()))
            with self.assertRaisesRegex(RuntimeError, "ocl"):
                torch.load(path, map_location=f"ocl:{torch.ocl.device_count()}")
            mapped = torch.load(path, map_location="cpu", mmap=True)
            equal(self, model, network_after(model))
            self.assertTrue(torch.equal(mapped["0.weight"].to("ocl"), model[0].weight))
            torch.save(network().state_dict(), path)  # a file of the CPU, read to the device
            self.assertEqual(torch.load(path, map_location="ocl")["0.bias"].device.type, "ocl")

    def test_whole_module(self) -> None:
        file = io.BytesIO()
        torch.save(network().to("ocl"), file)
        file.seek(0)
        with self.assertRaisesRegex(pickle.UnpicklingError, "weights_only"):
            torch.load(file)
        file.seek(0)
        self.assertEqual(torch.load(file, weights_only=False)[0].weight.device.type, "ocl")

    @unittest.skipIf(safetensors is None, "safetensors is not installed; ./run test installs it")
    def test_safetensors(self) -> None:
        model = network().to("ocl")
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "model.safetensors")
            safetensors.save_file(model.state_dict(), path)
            loaded = safetensors.load_file(path)  # its list of devices has no ocl
            for key, value in model.state_dict().items():
                self.assertTrue(torch.equal(loaded[key].to("ocl"), value))
            twin = network().to("ocl")
            with torch.no_grad():
                twin[0].weight.zero_()
            safetensors.load_model(twin, path)
            equal(self, twin, model)

    def test_assign_and_meta(self) -> None:
        source = network().to("ocl")
        with torch.device("meta"):
            model = network()
        model.load_state_dict(source.state_dict(), assign=True)
        self.assertEqual(model[0].weight.data_ptr(), source[0].weight.data_ptr())


class Checkpointing(unittest.TestCase):
    def test_gradients_equal(self) -> None:
        torch.manual_seed(21)
        model = nn.Sequential(
            *(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.3)) for _ in range(3))
        ).to("ocl")
        x = torch.randn(4, 6).to("ocl").requires_grad_()
        runs = {
            "plain": lambda: model(x),
            "reentrant": lambda: checkpoint(model, x, use_reentrant=True),
            "not reentrant": lambda: checkpoint(model, x, use_reentrant=False),
            "sequential": lambda: checkpoint_sequential(model, 3, x, use_reentrant=False),
        }
        wanted = None
        for name, run in runs.items():
            with self.subTest(name):
                model.zero_grad()
                x.grad = None
                torch.ocl.manual_seed(
                    5
                )  # dropout draws the same numbers again in the backward pass
                run().square().sum().backward()
                grads = [x.grad.cpu(), *(p.grad.cpu() for p in model.parameters())]
                wanted = wanted or grads
                for a, b in zip(grads, wanted):
                    self.assertTrue(torch.equal(a, b))
                self.assertGreater(grads[0].abs().sum().item(), 0)

    def test_saved_tensors_on_the_host(self) -> None:
        x = torch.linspace(-1, 1, 12).view(3, 4).to("ocl").requires_grad_()
        with torch.autograd.graph.save_on_cpu(pin_memory=True, device_type="ocl"):
            y = (x.exp() * x).sum()
        y.backward()
        want = ((x + 1) * x.exp()).detach().cpu()
        torch.testing.assert_close(x.grad.cpu(), want, rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
