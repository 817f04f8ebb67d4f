"""What the tests of torch.backends.ocl share: a product and a convolution to choose algorithms for,
and processes."""

import os
import subprocess
import sys
import tempfile
import unittest

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

ocl = torch.backends.ocl


def printed(body):
    """What the process writes to standard error meanwhile."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        try:
            os.dup2(file.fileno(), 2)
            body()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read().decode()


def run_python(source, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments, "-c", source] if source else [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=1800,
    )


class Case(unittest.TestCase):
    def setUp(self) -> None:
        # By rule means by rule here, whatever was measured on this machine, and what is measured
        # here is not for others.
        self.enterContext(ocl.flags(keep_measurements=False))
        torch.manual_seed(0)
        self.a, self.b = torch.randn(48, 64, device="ocl"), torch.randn(64, 40, device="ocl")
        self.expected = self.a.cpu() @ self.b.cpu()

    def product(self):
        result = (self.a @ self.b).cpu()
        torch.testing.assert_close(result, self.expected)
        return ocl.last_choices()["matmul"]

    def convolution(self):
        torch.nn.functional.conv2d(
            torch.randn(2, 3, 9, 9, device="ocl"), torch.randn(4, 3, 3, 3, device="ocl")
        )
        return ocl.last_choices()["conv"]
