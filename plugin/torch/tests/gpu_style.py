"""A file of tests again with the kernels of GPUs, in a process of its own, whatever the device
is."""

import os
import subprocess
import sys
import tempfile
import unittest

IS_GPU_STYLE = os.environ.get("OCLTENSOR_KERNEL_STYLE") == "gpu"


def environment(optimised: bool) -> dict[str, str]:
    """Of a process with the kernels of GPUs; not optimised: PoCL's optimiser is switched off.

    The keys of caches know nothing of PoCL's flags, so such a process has caches of its own; where
    the environment names none, as by hand, nothing is changed, and neither where it has flags
    already.
    """
    flags, caches = "POCL_EXTRA_BUILD_FLAGS", ("POCL_CACHE_DIR", "OCLTENSOR_CACHE_DIR")
    changed = {"OCLTENSOR_KERNEL_STYLE": "gpu"}
    if not optimised and flags not in os.environ and all(map(os.environ.get, caches)):
        changed |= {name: os.environ[name].rstrip("/") + "-unoptimised" for name in caches}
        changed[flags] = "-cl-opt-disable"
        for name in caches:
            os.makedirs(changed[name], exist_ok=True)
    return os.environ | changed


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

    Both compile kernels that the other does not need, which is what takes long the first time. A
    case that needs many programs and computes little says OPTIMISED = False: PoCL's vectoriser
    takes up to 20 times as long for loops unrolled between barriers as all else (sort/radix_tile.cl
    6.1 s instead of 0.3 s), and no GPU runs what it makes. Some cases of such kernels are optimised
    all the same: conformance.gpu_style names their operators.
    """

    OPTIMISED = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if IS_GPU_STYLE:
            return
        cls._said = tempfile.TemporaryFile("w+")
        cls.addClassCleanup(cls._said.close)
        cls._other = subprocess.Popen(
            [sys.executable, sys.modules[cls.__module__].__file__],
            env=environment(cls.OPTIMISED),
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
