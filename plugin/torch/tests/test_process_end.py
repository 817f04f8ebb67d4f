"""Tensors where Python's processes and threads end: right, or an error that says so; no signal.

Not daemon threads: PyTorch aborts in them, on the CPU, too.
"""

import os
import subprocess
import sys
import tempfile
import unittest

# `calls()` prints a line for each call.
CALLS = """
import atexit, sys, threading
{before}
import torch, torch_ocl
x = torch.ones(4, device="ocl")
w = torch.ones(3, 4, device="ocl", requires_grad=True)
net = torch.nn.Conv2d(1, 2, 2).to("ocl")

def item(): assert (x * 2).sum().item() == 8
def matmul(): assert (w @ x).tolist() == [4, 4, 4]
def backward(): assert torch.autograd.grad((w * w).sum(), w)[0].sum().item() == 24
def module(): assert net(torch.ones(1, 1, 3, 3, device="ocl")).shape == (1, 2, 2, 2)
def create(): assert torch.zeros(3, device="ocl").tolist() == [0, 0, 0]
def copies(): assert torch.arange(3).to("ocl").cpu().tolist() == [0, 1, 2]
def draw(): assert torch.rand(9, device="ocl").max().item() < 1
def sort(): assert torch.arange(4, device="ocl").sort(descending=True)[0].tolist() == [3, 2, 1, 0]
def text(): assert "1." in repr(x)
def stream():
    with torch.ocl.stream(torch.ocl.Stream()):
        assert (x + 1).tolist() == [2, 2, 2, 2]
def wait():
    torch.ocl.synchronize()
    torch.ocl.empty_cache()

PLAIN = item, matmul, create, copies, draw, sort, wait
def calls(which=(*PLAIN, backward, module, text, stream)):
    for call in which:
        try:
            call()
            print(call.__name__, "right", flush=True)
        except RuntimeError as error:
            print(call.__name__, error, flush=True)
    print("end", flush=True)

class Last:  # torch's own modules import there, which Python refuses, and abort, on the CPU, too
    def __del__(self): calls(PLAIN)

{place}
"""
PLACES = {
    "exit handler before the import": ("atexit.register(lambda: calls())", ""),
    "exit handler": ("", "atexit.register(calls)"),
    "used before": ("", "calls(); atexit.register(calls)"),
    "object of a module": ("", "last = Last()"),
    "object of a thread": (
        "",
        "def run():\n    threading.current_thread().last = Last()\n"
        "t = threading.Thread(target=run); t.start(); t.join(); del t",
    ),
    "exit in a thread": (
        "",
        "atexit.register(calls)\nt = threading.Thread(target=lambda: (calls(), sys.exit(3)))\n"
        "t.start(); t.join()",
    ),
    "thread after main": (
        "",
        "go = threading.Event()\n"
        "def run():\n    go.wait(); calls()\n"
        "threading.Thread(target=run).start()\n"
        "threading._register_atexit(go.set)",
    ),
}


class ProcessEnd(unittest.TestCase):
    def run_place(
        self, before: str, place: str, launch_thread: str
    ) -> subprocess.CompletedProcess[str]:
        source = CALLS.replace("{before}", before).replace("{place}", place)
        return subprocess.run(  # not forked.run: its processes end without the interpreter's end
            [sys.executable, "-W", "ignore", "-c", source],
            env={**os.environ, "OCLTENSOR_LAUNCH_THREAD": launch_thread},
            capture_output=True,
            text=True,
        )

    def test_places(self) -> None:
        for name, (before, place) in PLACES.items():
            for launch_thread in "01":
                with self.subTest(name, launch_thread=launch_thread):
                    result = self.run_place(before, place, launch_thread)
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                    lines = result.stdout.split("\n")[:-1]
                    self.assertEqual(lines[-1], "end", result.stdout + result.stderr)
                    wrong = [line for line in lines if not line.endswith(("right", "end"))]
                    self.assertEqual(wrong, [], result.stderr)

    def test_kernels_that_nobody_has_compiled(self) -> None:
        """The last call's kernel is compiled while the process ends: no cache has it."""
        last = "import torch, torch_ocl; torch.ones(20, 64, device='ocl').to(torch.float8_e4m3fn)"
        for launch_thread in "01":
            with self.subTest(launch_thread=launch_thread), tempfile.TemporaryDirectory() as cold:
                caches = {n: f"{cold}/{n}" for n in ("OCLTENSOR_CACHE_DIR", "POCL_CACHE_DIR")}
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", last],
                    env={**os.environ, **caches, "OCLTENSOR_LAUNCH_THREAD": launch_thread},
                    capture_output=True,
                    text=True,
                )
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


if __name__ == "__main__":
    unittest.main()
