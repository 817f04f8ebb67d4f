"""A file of tests again with the kernels of GPUs, in a process of its own, whatever the device
is."""

import os
import subprocess
import sys
import tempfile
import unittest

IS_GPU_STYLE = os.environ.get("OCLTENSOR_KERNEL_STYLE") == "gpu"


def run_again(case: unittest.TestCase, **settings: str) -> None:
    """Runs the file that defines a test case once more, with these environment variables."""
    file = sys.modules[type(case).__module__].__file__
    run = subprocess.run(
        [sys.executable, file], env=os.environ | settings, capture_output=True, text=True
    )
    case.assertEqual(run.returncode, 0, run.stderr)


class InGpuStyle:
    """A mixin of a test case: runs the file that defines it once more, beside the tests of this
    process.

    Both compile kernels that the other does not need, which is what takes long the first time.
    """

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if IS_GPU_STYLE:
            return
        cls._said = tempfile.TemporaryFile("w+")
        cls.addClassCleanup(cls._said.close)
        cls._other = subprocess.Popen(
            [sys.executable, sys.modules[cls.__module__].__file__],
            env=os.environ | {"OCLTENSOR_KERNEL_STYLE": "gpu"},
            stdout=cls._said,
            stderr=cls._said,
        )
        cls.addClassCleanup(cls._end_other)

    @classmethod
    def _end_other(cls) -> None:
        cls._other.kill()
        cls._other.wait()

    @unittest.skipIf(IS_GPU_STYLE, "is the style already")
    def test_gpu_style(self) -> None:
        status = self._other.wait()
        self._said.seek(0)
        self.assertEqual(status, 0, self._said.read())
