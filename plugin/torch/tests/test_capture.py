"""Captures: that ocltensor-replay computes the same bits from them, and that taking one changes no
result."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

os.environ["OCLTENSOR_CAPTURE_ENABLED"] = "1"  # before OpenCL is loaded


import torch
import torch_ocl  # registers ocl where no entry point is installed

BUILT = pathlib.Path(torch_ocl.__file__).parents[2] / "bin" / "ocltensor-replay"
REPLAY = str(BUILT) if BUILT.exists() else shutil.which("ocltensor-replay")


def train(steps: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(144, 32),
        torch.nn.LayerNorm(32),
    ).to("ocl")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        loss = model(torch.randn(8, 1, 8, 8).to("ocl")).softmax(1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [loss.detach(), *(p.detach() for p in model.parameters())]


def bits(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [t.cpu() for t in tensors]


@unittest.skipIf(REPLAY is None, "ocltensor-replay is not built")
class Captures(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "work.capture"

    def replay(self, *options, code=0, path=None) -> str:
        command = [REPLAY, *map(str, options), str(path or self.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def assert_same(self, a, b) -> None:
        for x, y in zip(a, b, strict=True):
            self.assertTrue(torch.equal(x, y))

    def test_training_replays_bit_equal_and_does_not_change(self) -> None:
        profiler = torch.ocl.profiler
        self.assertTrue(profiler.is_opencl_capture_enabled())
        self.assertFalse(profiler.is_capturing_opencl())
        expected = bits(train(3))
        with profiler.opencl_capture(self.path):
            self.assertTrue(profiler.is_capturing_opencl())
            results = train(3)
        self.assertFalse(profiler.is_capturing_opencl())
        self.assert_same(bits(results), expected)
        self.assert_same(bits(train(3)), expected)
        answer = json.loads(self.replay("--exact", "--json"))
        self.assertTrue(answer["verdict"]["bit_equal"])
        operators = {launch["operator"] for launch in answer["launches"]}
        self.assertLess({"convolution.out", "addmm.out", "native_layer_norm.out"}, operators)
        # A kernel with local memory is among them (of those for CPUs).
        if torch.ocl.get_device_properties().has_unified_memory:
            self.assertTrue(any("local " in launch["arguments"] for launch in answer["launches"]))
        # The results that live are among the tensors that are judged, with their types.
        judged = [(t["dtype"], t["sizes"]) for t in answer["verdict"]["tensors"]]
        for t in results:
            self.assertIn(("float32", list(t.shape)), judged)

    def test_streams_threads_kernels_and_types(self) -> None:
        library = torch.ocl.compile_kernel(
            "__kernel void halve(__global float *y, __global const float *x) {"
            " y[get_global_id(0)] = x[get_global_id(0)] / 2; }"
        )
        results = []

        def work(seed) -> None:
            with torch.ocl.stream(torch.ocl.Stream()):
                x = torch.arange(seed, seed + 3000, dtype=torch.float32).to("ocl")
                y = torch.empty_like(x)
                library.halve(y, x)
                for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.bool):
                    results.append((y[::3] * 3).to(dtype))
                results.append(torch.complex(x, y) * 2)
                results.append(y.sort(descending=True)[1])
                torch.ocl.synchronize()

        with torch.ocl.profiler.opencl_capture(self.path):
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        answer = json.loads(self.replay("--exact", "--json"))
        types = {t["dtype"] for t in answer["verdict"]["tensors"]}
        self.assertLess({"float16", "bfloat16", "int32", "bool", "int64", "complex64"}, types)
        self.assertIn("halve", self.replay("--list"))

    def test_beside_the_profiler(self) -> None:
        """Streams change their queues while a trace is taken."""
        expected = bits(train(1))
        with torch.ocl.profiler.opencl_capture(self.path):
            with torch.ocl.profiler.profile(path=self.folder / "trace.json"):
                first = train(1)
            second = train(1)
        self.replay("--exact")
        self.assert_same(bits(first), expected)
        self.assert_same(bits(second), expected)

    def test_what_lives_before_and_in_place(self) -> None:
        x = torch.randn(50_000, device="ocl")
        view = x[10:2000:3]
        before = x.cpu()
        with torch.ocl.profiler.opencl_capture(self.path):
            view.mul_(3)
            x[-100:] = 7
        self.replay("--exact")
        self.assertTrue(torch.equal(view.cpu(), before[10:2000:3] * 3))
        with torch.ocl.profiler.opencl_capture(self.path):
            pass
        self.replay("--exact")  # nothing in it

    def test_an_edited_kernel(self) -> None:
        x = torch.linspace(0.5, 4, 777, device="ocl")
        with torch.ocl.profiler.opencl_capture(self.path):
            y = torch.log(x)
        self.replay("--export", self.folder / "report")
        self.assertIn("driver", (self.folder / "report" / "README.md").read_text())
        self.replay("--exact", "--kernel-dir", self.folder / "report")
        edited = 0
        for file in (self.folder / "report").glob("*.cl"):
            text = file.read_text()
            if "log(" in text:
                file.write_text(text.replace("log(", "log2("))
                edited += 1
        self.assertGreater(edited, 0)
        text = self.replay("--kernel-dir", self.folder / "report", code=1)
        self.assertIn("MISMATCH", text)
        self.assertIn("log.out", text)
        broken = next((self.folder / "report").glob("*.cl"))
        broken.write_text("__kernel void f( {")
        self.assertIn(
            "did not compile", self.replay("--kernel-dir", self.folder / "report", code=2)
        )
        self.assertEqual(y.shape, x.shape)

    def test_kernels_for_gpus(self) -> None:
        """With work-groups and local memory, in a process of its own."""
        code = f"import runpy; runpy.run_path({__file__!r})['child']({str(self.path)!r})"
        env = os.environ | {"OCLTENSOR_KERNEL_STYLE": "gpu"}
        subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=1800)
        self.replay("--exact")

    def test_without_the_variable(self) -> None:
        code = (
            "import torch, torch_ocl\n"
            "assert not torch.ocl.profiler.is_opencl_capture_enabled()\n"
            "x = torch.ones(10, device='ocl')\n"
            "try:\n"
            f"    with torch.ocl.profiler.opencl_capture({str(self.path)!r}): pass\n"
            "except RuntimeError as e:\n"
            "    print(e)\n"
            "assert (x + 1).sum().item() == 20\n"
        )
        env = {k: v for k, v in os.environ.items() if k != "OCLTENSOR_CAPTURE_ENABLED"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        self.assertIn("OCLTENSOR_CAPTURE_ENABLED=1", done.stdout)
        self.assertFalse(self.path.exists())

    def test_errors(self) -> None:
        capture = torch.ocl.profiler.opencl_capture
        with self.assertRaisesRegex(RuntimeError, "cannot be written: No such file"):
            with capture("/nowhere/x.capture"):
                self.fail("not reached")
        with self.assertRaisesRegex(RuntimeError, "on already"):
            with capture(self.path), capture(self.folder / "other"):
                self.fail("not reached")
        with self.assertRaisesRegex(RuntimeError, "no capture is on"):
            torch_ocl._C.capture_stop()
        with self.assertRaisesRegex(ValueError, "of the user"):
            with capture(self.path):
                torch.ones(3, device="ocl").add(1)
                raise ValueError("of the user")
        self.assertIn("add.out", self.replay("--list"))
        if pathlib.Path("/dev/full").exists():
            with self.assertRaisesRegex(RuntimeError, "No space left"):
                with capture("/dev/full"):
                    self.fail("not reached")
        self.assertEqual(train(1)[0].shape, ())  # training goes on

    def test_fork(self) -> None:
        """A child cannot go on with its parent's capture, nor spoil it."""
        with torch.ocl.profiler.opencl_capture(self.path):
            x = torch.arange(1000.0).to("ocl") * 2
            child = os.fork()
            if child == 0:
                try:
                    torch_ocl._C.capture_stop()
                    os._exit(1)
                except RuntimeError:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            x += 1
        self.assertEqual(status, 0)
        self.replay("--exact")


def child(path: str) -> None:
    torch.randn(4, device="ocl").sum().item()
    with torch.ocl.profiler.opencl_capture(path):
        train(1)


if __name__ == "__main__":
    unittest.main()
