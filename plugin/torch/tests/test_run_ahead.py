"""A host that waits for nothing: the queue stays short, memory flat, and Ctrl-C and the process's
end come through."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import torch
import torch_ocl  # noqa: F401


class RunAhead(unittest.TestCase):
    def test_the_wait_at_the_end_is_short(self) -> None:
        # Commands that take milliseconds, so that without a bound seconds of them would wait at
        # once.
        a = torch.randn(768, 768, device="ocl") / 28
        b = (a @ a).tanh()
        torch.ocl.synchronize()
        start = time.monotonic()
        count = 0
        while time.monotonic() - start < 2:
            b = (b @ a).tanh()
            count += 1
        enqueued = time.monotonic()
        torch.ocl.synchronize()
        waited = time.monotonic() - enqueued
        # All the work, at the pace at which it was done: the wait is a small part of it, however
        # busy the machine is.
        self.assertLess(waited, 0.5 * (enqueued - start + waited), f"{count} products")

    def test_memory_of_pinned_batches_is_flat(self) -> None:
        a = torch.randn(512, 512, device="ocl") / 23

        def batch() -> None:
            host = torch.ones(1 << 19).pin_memory()  # 2 MiB
            x = host.to("ocl", non_blocking=True)
            for _ in range(8):
                x[:262144].view(512, 512) @ a

        # 1.2 GiB in all. In flight are 256 MiB at most, and the memory of those is used again.
        for _ in range(600):
            batch()
        pinned = torch.ocl.memory_stats()["pinned_bytes.all.current"]
        torch.ocl.synchronize()
        self.assertLess(pinned, 384 << 20)

    def test_a_pinned_block_is_free_after_its_copy(self) -> None:
        host = torch.ones(1 << 20).pin_memory()
        address = host.data_ptr()
        x = host.to("ocl", non_blocking=True)
        copied = torch.ocl.Event()
        copied.record()
        a = torch.randn(512, 512, device="ocl")
        copied.synchronize()
        for _ in range(50):
            a = (a @ a).tanh()
        del host  # work is queued behind the copy: it does not use the block
        self.assertEqual(torch.empty(1 << 20).pin_memory().data_ptr(), address)
        self.assertEqual(x.sum().item(), 1 << 20)

    def test_the_wait_is_in_the_trace(self) -> None:
        # Any device takes longer for such a product than a host to ask for it, unless the host gets
        # no processor for a while: it then tries again.
        a = torch.randn(1024, 1024, device="ocl") / 32
        b = a @ a
        torch.ocl.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            for _ in range(60):
                with torch.ocl.profiler.profile(path=path):
                    start = time.monotonic()
                    while time.monotonic() - start < 1:
                        b = b @ a
                    torch.ocl.synchronize()
                with open(path) as file:
                    if "the host is far ahead of the device" in file.read():
                        return
        self.fail("in no second of products a wait of the host was traced")

    BUSY = """
import torch, torch_ocl
a = torch.randn(512, 512, device="ocl") / 23
(a @ a).tanh().sum().item()
print("ready", flush=True)
b = a
{loop}
"""

    def child(self, loop: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", self.BUSY.format(loop=loop)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(process.stdout.readline().strip(), "ready")
        return process

    def test_ctrl_c_comes_through(self) -> None:
        loop = (
            "try:\n  while True: b = (b @ a).tanh()\nexcept KeyboardInterrupt: "
            "print(b.sum().isfinite().item())"
        )
        process = self.child(loop)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
        self.assertEqual((process.returncode, out.strip()), (0, "True"), err)

    def test_the_end_of_a_busy_process(self) -> None:
        process = self.child("for _ in range(3000): b = (b @ a).tanh()")
        _, err = process.communicate(timeout=600)
        self.assertEqual((process.returncode, err), (0, ""))


if __name__ == "__main__":
    unittest.main()
