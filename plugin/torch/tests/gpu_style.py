"""A file of tests again with the kernels of GPUs, in a process of its own, whatever the device is."""

import os
import subprocess
import sys
import unittest


class InGpuStyle:
    """A mixin of a test case: runs the file that defines it once more."""

    @unittest.skipIf(os.environ.get("OCLTENSOR_KERNEL_STYLE") == "elements", "is the style already")
    def test_gpu_style(self):
        environment = os.environ | {"OCLTENSOR_KERNEL_STYLE": "elements"}
        file = sys.modules[type(self).__module__].__file__
        run = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
