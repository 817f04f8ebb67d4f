"""torch.ocl.warmup: the first real step compiles nothing, and everything is as before."""

import io
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest
from unittest import mock

import forked
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

COLD = """
import sys, torch, torch_ocl
from test_warm_up import network, take_step
model, x, y = network()
sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if sys.argv[1] == "warm":
    loss = lambda out: torch.nn.functional.cross_entropy(out, y)
    done = torch.ocl.warmup(model, x, loss=loss, optimizer=sgd)
    print(done.programs, done.calls)
before = torch.ocl.counters()["program_builds"] + torch.ocl.counters()["program_loads"]
losses = [take_step(model, sgd, x, y) for _ in range(2)]
print(torch.ocl.counters()["program_builds"] + torch.ocl.counters()["program_loads"] - before)
print(losses)
"""


def network() -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.GELU(),
        torch.nn.Dropout(0.3),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 8 * 8, 5),
    ).to("ocl")
    return model, torch.randn(4, 3, 8, 8).to("ocl"), torch.tensor([0, 2, 4, 1]).to("ocl")


def take_step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> float:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def run_cold(mode: str, ahead: str, builders: bool = True) -> list[str]:
    """Lines of COLD in a process with cold caches; without builders the plugin finds none near
    it."""
    with tempfile.TemporaryDirectory(
        ignore_cleanup_errors=True
    ) as folder:  # builders may still end there
        os.mkdir(folder + "/driver")
        environment = {
            **os.environ,
            "OCLTENSOR_CACHE_DIR": folder + "/ours",
            "POCL_CACHE_DIR": folder + "/driver",
            "OCLTENSOR_BUILD_AHEAD": ahead,
            "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
        }
        if not builders:
            plugin = pathlib.Path(torch_ocl.__file__).parent / "lib/libocltensor_plugin.so"
            environment["OCLTENSOR_PLUGIN_PATH"] = shutil.copy(plugin, folder)
        run = forked.run(COLD, mode, env=environment)
        assert run.returncode == 0, run.stderr
        left = [name for name in os.listdir(folder + "/ours") if name.endswith(".list")]
        assert not left, left
    return run.stdout.splitlines()


class Cold(unittest.TestCase):
    def test_the_first_step_compiles_nothing(self) -> None:
        plain = run_cold("plain", "0")
        self.assertGreater(int(plain[0]), 10)
        warm = run_cold("warm", "1")
        programs, calls = map(int, warm[0].split())
        self.assertGreater(programs, 10)
        self.assertEqual(calls, 2)
        self.assertEqual(int(warm[1]), 0)
        self.assertEqual(
            warm[2], plain[1]
        )  # bit for bit: random states, statistics and weights are as before

    def test_builders_that_cannot_be_started_leave_nothing_behind(self) -> None:
        warm = run_cold("warm", "1", builders=False)
        self.assertEqual(int(warm[1]), 0)


class Warm(unittest.TestCase):
    def state(self, model: torch.nn.Module, sgd: torch.optim.Optimizer) -> list[torch.Tensor]:
        momenta = [
            s["momentum_buffer"] for s in sgd.state.values() if s.get("momentum_buffer") is not None
        ]
        tensors = [
            *model.state_dict().values(),
            *momenta,
            *(p.grad for p in model.parameters() if p.grad is not None),
        ]
        return [t.cpu().clone() for t in tensors] + [
            torch.ocl.get_rng_state(),
            torch.get_rng_state(),
        ]

    def test_everything_is_as_before(self) -> None:
        model, x, y = network()
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for steps in (0, 1):
            for _ in range(steps):
                take_step(model, sgd, x, y)
            before = self.state(model, sgd)
            gradients = [p.grad for p in model.parameters()]
            done = torch.ocl.warmup(model, (x,), optimizer=sgd)
            self.assertGreaterEqual(done.calls, 1)
            self.assertGreater(done.seconds, 0)
            after = self.state(model, sgd)
            self.assertEqual(len(before), len(after))
            for a, b in zip(before, after, strict=True):
                self.assertTrue(torch.equal(a, b))
            for p, gradient in zip(model.parameters(), gradients, strict=True):
                self.assertIs(p.grad, gradient)

    def test_functions_inference_and_keywords(self) -> None:
        x = torch.arange(12.0).to("ocl")
        seen = []

        def model(a: torch.Tensor, *, scale: float) -> torch.Tensor:
            result = (a * scale).logcumsumexp(0)
            seen.append(result.sum().item())
            return result

        done = torch.ocl.warmup(model, x, {"scale": 0.5})
        self.assertEqual(done.calls, 2 if done.programs else 1)
        self.assertEqual(len(seen), 1)  # a rehearsal ends at item()
        self.assertAlmostEqual(
            seen[0], (torch.arange(12.0) * 0.5).logcumsumexp(0).sum().item(), places=4
        )
        module, images, _ = network()
        module.eval()
        with torch.no_grad():
            torch.ocl.warmup(module, images)
        self.assertTrue(all(p.grad is None for p in module.parameters()))

    def test_what_a_module_keeps_is_not_from_a_rehearsal(self) -> None:
        class Caching(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(5))
                self.table: torch.Tensor | None = None

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if self.table is None:
                    self.table = torch.special.i1e(x.detach()) + torch.special.erfcx(x.detach())
                x += 1  # of a copy
                return x * self.weight * self.table

        model, x = Caching().to("ocl"), torch.linspace(-2, 2, 5).to("ocl")
        kept, wanted = (
            x.clone(),
            (x.cpu() + 1) * (torch.special.i1e(x.cpu()) + torch.special.erfcx(x.cpu())),
        )
        torch.ocl.warmup(model, x)
        self.assertIsNone(model.table)
        self.assertTrue(torch.equal(x, kept))
        torch.testing.assert_close(model(x).cpu(), wanted)

    def test_a_model_that_cannot_be_copied(self) -> None:
        model = torch.nn.Linear(3, 2).to("ocl")
        model.lock = threading.Lock()
        x = torch.ones(1, 3, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "cannot be copied .*pass a function"):
            torch.ocl.warmup(model, x)
        model.weight.grad = before = torch.full_like(model.weight, 7)
        self.assertGreaterEqual(torch.ocl.warmup(lambda a: model(a), x, backward=True).calls, 1)
        self.assertIs(model.weight.grad, before)
        self.assertEqual(before.sum().item(), 7 * 6)
        self.assertIsNone(model.bias.grad)

    def test_errors(self) -> None:
        with self.assertRaisesRegex(
            RuntimeError, "neither the model nor an input is on an ocl device"
        ):
            torch.ocl.warmup(torch.nn.Linear(2, 2), torch.ones(1, 2))
        x = torch.ones(3, device="ocl")
        with self.assertRaisesRegex(RuntimeError, "requires a gradient"):
            torch.ocl.warmup(lambda a: a * 2, x, backward=True)
        with self.assertRaisesRegex(ValueError, "mine"):
            torch.ocl.warmup(self.fail_with_value_error, x)
        self.assertEqual((x + 1).sum().item(), 6)
        self.assertEqual(torch.ocl.current_stream(), torch.ocl.default_stream())

    @staticmethod
    def fail_with_value_error(a: torch.Tensor) -> None:
        raise ValueError("mine")

    def test_progress(self) -> None:
        with mock.patch("sys.stderr", new_callable=io.StringIO) as shown:
            torch.ocl.warmup(torch.neg, torch.ones(3, device="ocl"), progress=True)
            self.assertIn("warming up, call 1", shown.getvalue())
        with mock.patch("sys.stderr", new_callable=io.StringIO) as shown:
            torch.ocl.warmup(torch.neg, torch.ones(3, device="ocl"))
            self.assertEqual(shown.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
