"""Importing torch and torch_ocl: in either order, and clear texts where something is missing."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch_ocl

PACKAGE = pathlib.Path(torch_ocl.__file__).parent


class Import(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.link()

    def link(self) -> None:
        """A package of links beside an entry point, as pip installs it."""
        package = self.folder / "torch_ocl"
        (package / "lib").mkdir(parents=True)
        for file in (*PACKAGE.iterdir(), *(PACKAGE / "lib").iterdir()):
            copy = package / file.relative_to(PACKAGE)
            # What looks for others beside its real file is copied.
            if file.name.startswith(("_C", "libtorch_ocl")):
                shutil.copy(file, copy)
            elif file.name not in ("__pycache__", "lib"):
                copy.symlink_to(file)
        info = self.folder / "torch_ocl-0.1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_ocl\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text("[torch.backends]\nocl = torch_ocl:_autoload\n")

    def remove(self, pattern) -> None:
        for file in (self.folder / "torch_ocl").glob(pattern):
            file.unlink()

    def python(self, code, **environment):
        unset = ("OCLTENSOR_PLUGIN_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")
        env = {k: v for k, v in os.environ.items() if k not in unset}
        env |= {"PYTHONPATH": str(self.folder)} | environment
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=env,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=1800,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), done.stderr

    def test_autoload(self) -> None:
        for first in ("import torch", "import torch_ocl, torch"):
            with self.subTest(first=first):
                out, _ = self.python(
                    f"{first}\nimport torch_ocl\nprint(torch.device('ocl').type, "
                    f"torch.ocl.is_built())"
                )
                self.assertEqual(out, "ocl True")

    def test_autoload_off(self) -> None:
        code = (
            "import torch\nprint(hasattr(torch, 'ocl'))\nimport "
            "torch_ocl\nprint(torch.ocl.is_built())"
        )
        self.assertEqual(self.python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")[0], "False\nTrue")

    def test_autoload_setting(self) -> None:
        code = """
import torch
print(hasattr(torch.ocl, 'current_device'), torch.ocl.is_available())
print(torch.ocl.unavailable_reason())
import torch_ocl
print(torch.ones(2, device='ocl').sum().item(), torch.accelerator.current_accelerator())"""
        out, said = self.python(code, OCLTENSOR_AUTOLOAD="0")
        lines = out.splitlines()
        self.assertEqual((lines[0], lines[2]), ("False False", "2.0 ocl"))
        self.assertIn("import torch_ocl", lines[1])
        self.assertNotIn("Warning", said)
        self.assertTrue(self.python(code, OCLTENSOR_AUTOLOAD="1")[0].startswith("True True"))

    def test_autoload_beside_another_accelerator(self) -> None:
        """The rule, with the files of other drivers in a folder of this test."""
        files = self.folder / "dev"
        files.mkdir()
        code = f"""
import torch
from torch_ocl import _accelerators as rule
def other(**versions):
    for name in ('cuda', 'hip', 'xpu'): setattr(torch.version, name, versions.get(name))
    return rule.other_accelerator({str(files)!r})
print(other(), other(cuda='13.0'), other(hip='7.0'))
open({str(files / "nvidiactl")!r}, 'w').close()
print(other(), other(cuda='13.0'), other(hip='7.0'))
rule.other_accelerator = lambda: 'CUDA'
print(rule.reason_to_wait())"""
        lines = self.python(code)[0].splitlines()
        self.assertEqual(lines[:2], ["None None None", "None CUDA None"])
        self.assertIn("OCLTENSOR_AUTOLOAD=1", lines[2])

    def test_seeding_opens_no_device(self) -> None:
        out, _ = self.python(
            "import torch\ntorch.manual_seed(4)\nprint(torch.ocl.is_initialized(), "
            "torch.ocl.initial_seed())"
        )
        self.assertEqual(out, "False 4")

    def test_init_opens_a_device(self) -> None:
        out, _ = self.python(
            "import torch\nfrom torch import ocl\nocl.get_device_properties(0)\n"
            "before = ocl.is_initialized()\nocl.init()\nprint(before, ocl.is_initialized())"
        )
        self.assertEqual(out, "False True")

    def test_a_chosen_device_counts_as_initialised(self) -> None:
        for choose in ("ocl.set_device(0)", "torch.accelerator.set_device_index(0)"):
            code = f"import torch\nfrom torch import ocl\n{choose}\nprint(ocl.is_initialized())"
            self.assertEqual(self.python(code)[0], "True", choose)

    def test_no_plugin(self) -> None:
        self.remove("lib/libocltensor_plugin.so")
        code = """
import torch
print(torch.ocl.is_available(), torch.ocl.is_built(), torch.ocl.device_count())
torch.ocl.manual_seed(1), torch.manual_seed(1)
print(torch.ocl.unavailable_reason())
for call in (torch.ocl.init, lambda: torch.UntypedStorage(8, device='ocl')):
    try: call()
    except RuntimeError as error: print(error)
"""
        lines = self.python(code)[0].splitlines()
        self.assertEqual(lines[0], "False True 0")
        for line in lines[1:]:
            self.assertIn("there is no such file", line)
            self.assertIn("libocltensor_plugin.so", line)
        self.assertEqual(len(lines), 4)

    def test_no_device(self) -> None:
        out, _ = self.python(
            "import torch\nprint(torch.ocl.is_available(), torch.ocl.unavailable_reason())",
            OCLTENSOR_DEVICES="no such device",
        )
        self.assertTrue(out.startswith("False "), out)
        self.assertIn("no such device", out)

    def test_bad_environment(self) -> None:
        out, _ = self.python(
            "import torch\nprint(torch.ocl.is_available(), torch.ocl.unavailable_reason())",
            OCLTENSOR_PLUGIN_PATH="relative/path",
        )
        self.assertTrue(out.startswith("False "), out)
        self.assertIn("OCLTENSOR_PLUGIN_PATH", out)

    def test_wrong_torch(self) -> None:
        for adapter in (self.folder / "torch_ocl").glob("_C_torch*"):
            name = adapter.name
            adapter.rename(adapter.with_name("_C_torch19" + name[name.index(".") :]))
        code = """
import torch
print(torch.ocl.is_available(), torch.ocl.device_count(), hasattr(torch.ocl, 'Stream'))
print(torch.ocl.unavailable_reason())
try: import torch_ocl
except ImportError as error: print(error)
"""
        out, warnings = self.python(code)
        lines = out.splitlines()
        self.assertEqual(lines[0], "False 0 False")
        self.assertIn("torch_ocl was built for torch 1.9, but this is torch", lines[1])
        self.assertEqual(lines[1], lines[2])
        self.assertIn("RuntimeWarning: torch.ocl is not available", warnings)
        out, _ = self.python("try: import torch_ocl\nexcept ImportError as error: print(error)")
        self.assertIn("torch_ocl was built for torch 1.9", out)


if __name__ == "__main__":
    unittest.main()
