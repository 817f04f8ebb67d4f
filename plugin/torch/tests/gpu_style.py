"""A file of tests again with the kernels of GPUs, in a process of its own, whatever the device
is."""

import functools
import os
import subprocess
import sys
import tempfile
import unittest
from typing import IO

import torch

IS_GPU_STYLE = os.environ.get("OCLTENSOR_KERNEL_STYLE") == "gpu"
THOROUGH = "TEST_THOROUGHLY" in os.environ  # ./run test --thorough


def for_gpus() -> bool:
    """Whether kernels are those for GPUs: by the setting, or because the device is one."""
    return IS_GPU_STYLE or torch.ocl.get_device_properties(0).kind != "cpu"


def some(count: int) -> int:
    """Of random cases, which all are worth a try: how many each run has time for."""
    return count if THOROUGH else count // 3


def of_style(types: tuple) -> tuple:
    """Of types whose kernels are the same but for what they load and store: in the style of GPUs,
    which compiles all of them once more, the last one stands for the others."""
    return types if THOROUGH or not IS_GPU_STYLE else types[-1:]


# A class of tests of what PyTorch makes of several operators, each of which has tests of its own.
of_operators = unittest.skipIf(IS_GPU_STYLE and not THOROUGH, "its operators are tested")


def environment(optimised: bool) -> dict[str, str]:
    """Of a process with the kernels of GPUs; not optimised: PoCL's optimiser is switched off.

    The keys of caches know nothing of PoCL's flags, so such a process has caches of its own; where
    the environment names none, as by hand, nothing is changed, and neither where it has flags
    already.
    """
    flags, caches = "POCL_EXTRA_BUILD_FLAGS", ("POCL_CACHE_DIR", "OCLTENSOR_CACHE_DIR")
    changed = {"OCLTENSOR_KERNEL_STYLE": "gpu"}
    if (
        not optimised
        and not THOROUGH
        and flags not in os.environ
        and all(map(os.environ.get, caches))
    ):
        changed |= {name: os.environ[name].rstrip("/") + "-unoptimised" for name in caches}
        changed[flags] = "-cl-opt-disable"
        for name in caches:
            os.makedirs(changed[name], exist_ok=True)
    return os.environ | changed


def run_again(case: unittest.TestCase, *only: str, **settings: str) -> None:
    """Runs the file that defines a test case once more, with these environment variables: all of
    its tests, or those whose names have one of these words in them."""
    file = sys.modules[type(case).__module__].__file__
    names = [word for name in only for word in ("-k", name)]
    command = [sys.executable, file, "-v", *names]
    run = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    case.assertEqual(run.returncode, 0, run.stderr)
    for name in only:  # no test of the name would be no failure
        case.assertRegex(run.stderr, rf"test_\w*{name}\w* .*")


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
        if not IS_GPU_STYLE:
            cls._other, cls._said = _again(sys.modules[cls.__module__].__file__, cls.OPTIMISED)

    @unittest.skipIf(IS_GPU_STYLE, "is the style already")
    def test_gpu_style(self) -> None:
        status = self._other.wait()
        self._said.seek(0)
        self.assertEqual(status, 0, self._said.read())


@functools.cache  # of a file with several classes, too, there is one other process
def _again(file: str, optimised: bool) -> tuple[subprocess.Popen, IO[str]]:
    said = tempfile.TemporaryFile("w+")
    other = subprocess.Popen(
        [sys.executable, file], env=environment(optimised), stdout=said, stderr=said
    )
    unittest.addModuleCleanup(said.close)
    unittest.addModuleCleanup(other.wait)
    unittest.addModuleCleanup(other.kill)
    return other, said
