"""torch_ocl.integrations with libraries made for the test: order of imports, versions, settings."""

import os
import pathlib
import re
import shutil
import sys
import tempfile
import textwrap
import threading
import types
import unittest

import forked
import torch
import torch_ocl
from torch_ocl.integrations import _choice
from torch_ocl.integrations._patch import Patch
from torch_ocl.integrations.table import TABLE

PLUGIN = pathlib.Path(__file__).resolve().parents[1]

# In place of the real ultralytics: as little of it as its integration changes.
DEVICES = """
PYTHON_VERSION = TORCH_VERSION = __version__ = "0"
class LOGGER:
    info = print
def parse_device(device=""):
    raise ValueError("Invalid CUDA device")
def select_device(device="", newline=False, verbose=True):
    raise ValueError("Invalid CUDA device")
"""
TRAINER = """
from ultralytics.utils.torch_utils import select_device
class BaseTrainer:
    def _setup_train(self):
        pass
    def _setup_ddp(self):
        pass
"""
ASK = """
import ultralytics.engine.trainer as trainer, ultralytics.utils.torch_utils as utils
def ask(select):
    try:
        return str(select("ocl:0", verbose=False))
    except ValueError as error:
        return str(error)
print(ask(utils.select_device), ask(trainer.select_device))
print({s.library: s for s in torch.ocl.integrations()}["ultralytics"])
"""
BOTH = "ocl:0 ocl:0"


class Imports(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.library()

    def library(self, devices: str = DEVICES, version: str = "8.4.177") -> None:
        for name, text in {
            "__init__": "",
            "utils/__init__": "",
            "utils/torch_utils": devices,
            "engine/__init__": "",
            "engine/trainer": TRAINER,
        }.items():
            file = self.folder / "ultralytics" / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for old in self.folder.glob("*.dist-info"):
            shutil.rmtree(old)
        info = self.folder / f"ultralytics-{version}.dist-info"
        info.mkdir(exist_ok=True)
        text = f"Metadata-Version: 2.1\nName: ultralytics\nVersion: {version}\n"
        (info / "METADATA").write_text(text)

    def python(self, code: str, setting: str = "") -> tuple[str, str]:
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])
        done = forked.run(
            textwrap.dedent(code),
            env={**os.environ, "PYTHONPATH": path, "OCLTENSOR_INTEGRATIONS": setting},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_orders(self) -> None:
        during = "import torch_ocl" + DEVICES  # as most libraries import torch, which imports us
        for name, devices, code in (
            ("after", DEVICES, "import torch, torch_ocl" + ASK),
            ("before", DEVICES, "import ultralytics.engine.trainer, torch, torch_ocl" + ASK),
            ("during", during, "import ultralytics.engine.trainer, torch" + ASK),
        ):
            with self.subTest(name):
                self.library(devices)
                out, errors = self.python(code)
                self.assertIn(BOTH, out)
                self.assertIn("state='applied'", out)
                self.assertNotIn("Warning", errors)

    def test_unknown_versions(self) -> None:
        for version in ("8.4.99", "8.5.0.dev1+local"):
            with self.subTest(version):
                self.library(version=version)
                out, errors = self.python("import torch, torch_ocl" + ASK)
                self.assertIn("Invalid CUDA device Invalid CUDA device", out)
                self.assertIn("versions from 8.4.150 on and before 8.5 are known", out)
                self.assertEqual(errors.count("RuntimeWarning"), 1, errors)
                self.assertIn("OCLTENSOR_INTEGRATIONS=-ultralytics", errors)

    def test_no_version(self) -> None:
        (self.folder / "ultralytics-8.4.177.dist-info/METADATA").unlink()
        out, errors = self.python("import torch, torch_ocl" + ASK)
        self.assertIn("reason='its version is not known'", out)
        self.assertEqual(errors.count("RuntimeWarning"), 1, errors)
        (self.folder / "ultralytics/__init__.py").write_text("__version__ = '8.4.199'")
        self.assertIn(BOTH, self.python("import torch, torch_ocl" + ASK)[0])

    def test_setting(self) -> None:
        start = "import torch, torch_ocl" + ASK
        out, errors = self.python(start, "0")
        self.assertIn("state='off', reason='OCLTENSOR_INTEGRATIONS=0'", out)
        self.assertNotIn("Warning", errors)
        self.assertIn(BOTH, self.python(start, "accelerate,ultralytics")[0])
        out, errors = self.python(start, "ultralitics")
        self.assertIn("state='refused'", out)
        self.assertIn("unknown: ultralitics. It takes 0, or names", errors)

    def test_setting_off_hides_an_unknown_version(self) -> None:
        self.library(version="9.0")
        out, errors = self.python("import torch, torch_ocl" + ASK, "-ultralytics")
        self.assertNotIn("Warning", errors)

    def test_half_a_library(self) -> None:
        self.library(DEVICES.replace("select_device", "choose_device"))
        (self.folder / "ultralytics/engine/trainer.py").write_text("")
        out, errors = self.python("""
            import torch, torch_ocl
            import ultralytics.utils.torch_utils as utils, ultralytics.engine.trainer
            print(utils.parse_device.__module__)  # changed first, and put back
            print({s.library: s for s in torch.ocl.integrations()}["ultralytics"])
        """)
        self.assertIn("ultralytics.utils.torch_utils\n", out)
        self.assertIn("state='refused'", out)
        self.assertIn("ultralytics.utils.torch_utils has no select_device", out)
        self.assertEqual(errors.count("RuntimeWarning"), 1, errors)

    def test_an_import_that_fails(self) -> None:
        for first in ("raise OSError('no file')", "import torch_ocl; raise OSError('no file')"):
            self.library(first)
            out, _ = self.python("""
                import torch
                for attempt in range(2):
                    try:
                        import ultralytics.utils.torch_utils
                    except OSError as error:
                        print(error)
                import torch_ocl
                print({s.library: s for s in torch.ocl.integrations()}["ultralytics"].state)
            """)
            self.assertEqual(out, "no file\nno file\nnot imported\n")

    def test_threads_see_it_changed(self) -> None:
        self.library("import time; time.sleep(0.05)" + DEVICES)
        out, _ = self.python("""
            import threading, torch, torch_ocl
            seen = []
            def use():
                from ultralytics.engine.trainer import select_device
                seen.append(str(select_device("ocl:0", verbose=False)))
            threads = [threading.Thread(target=use) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(seen)
        """)
        self.assertEqual(out.count("ocl:0"), 8, out)

    def test_workers(self) -> None:
        out, _ = self.python("""
            import multiprocessing, sys, torch, torch_ocl
            def worker(queue):
                import ultralytics.utils.torch_utils as utils
                queue.put(utils.parse_device("ocl"))
            queue = multiprocessing.get_context("fork").SimpleQueue()
            process = multiprocessing.get_context("fork").Process(target=worker, args=(queue,))
            process.start(); print("forked", queue.get()); process.join()
        """)
        self.assertEqual(out, "forked ocl\n")

    def test_no_library_no_work(self) -> None:
        names = [row.library for row in TABLE]
        out, _ = self.python(f"""
            import sys, torch, torch_ocl
            print([m for m in sys.modules for n in {names}
                   if m == "torch_ocl.integrations." + n or m.split(".")[0] == n])
            print(set(s.state for s in torch.ocl.integrations()))
        """)
        self.assertEqual(out, "[]\n{'not imported'}\n")

    def test_a_module_looks_as_without(self) -> None:
        out, _ = self.python("""
            import torch, torch_ocl, importlib, inspect
            import ultralytics.utils.torch_utils as utils
            print(type(utils.__spec__.loader).__name__, type(utils.__loader__).__name__)
            print("def parse_device" in inspect.getsource(utils))
            print("ocl" in importlib.reload(utils).parse_device("ocl:0"))
        """)
        self.assertEqual(out, "SourceFileLoader SourceFileLoader\nTrue\nTrue\n")


class Patches(unittest.TestCase):
    def setUp(self) -> None:
        self.library = types.ModuleType("a_library")
        exec("def f(): return 1\ndef g(x): return x in ('a', 'b')", vars(self.library))

    def test_two_of_one_function(self) -> None:
        first, second = Patch(), Patch()
        user = types.ModuleType("a_user")
        user.f = old = self.library.f
        sys.modules["a_user"] = user
        self.addCleanup(sys.modules.pop, "a_user")
        first.replace(self.library, "f", lambda old: lambda: old() + 1)
        second.replace(self.library, "f", lambda old: lambda: old() * 10)
        self.assertEqual((self.library.f(), user.f(), user.f.__name__), (20, 20, "f"))
        second.undo()
        self.assertEqual((self.library.f(), user.f()), (2, 2))
        first.undo()
        self.assertIs(self.library.f, old)
        self.assertIs(user.f, old)

    def test_lists_in_functions(self) -> None:
        patch = Patch()
        patch.extend_list(self.library.g, "b", "c")
        self.assertTrue(self.library.g("c"))
        patch.undo()
        self.assertFalse(self.library.g("c"))
        with self.assertRaisesRegex(ValueError, "g has 0 lists with 'z'"):
            patch.extend_list(self.library.g, "z", "c")

    def test_what_is_not_there(self) -> None:
        with self.assertRaisesRegex(AttributeError, "a_library has no h"):
            Patch().replace(self.library, "h", lambda old: old)

    def test_new_attributes_go_again(self) -> None:
        patch = Patch()
        patch.set(self.library, "new", 1)
        patch.undo()
        self.assertFalse(hasattr(self.library, "new"))


class Choice(unittest.TestCase):
    def test_words(self) -> None:
        self.addCleanup(torch.backends.ocl.set_setting, _choice.SETTING, "")
        for setting, wanted in (
            ("", True),
            ("ultralytics", True),
            ("accelerate, ultralytics ,", True),
            ("-accelerate", True),
            ("0", False),
            ("accelerate", False),
            ("-accelerate, -ultralytics", False),
        ):
            torch.backends.ocl.set_setting(_choice.SETTING, setting)
            against = _choice.reason_against("ultralytics")
            self.assertEqual(against == "", wanted, setting)
        for wrong, text in (
            ("ultralitics", "unknown: ultralitics"),
            ("accelerate,-ultralytics", "names with and without -"),
            ("0,accelerate", "unknown: 0"),
        ):
            torch.backends.ocl.set_setting(_choice.SETTING, wrong)
            with self.assertRaisesRegex(ValueError, f"{text}. It takes 0, or .* accelerate, trans"):
                _choice.reason_against("ultralytics")


class Table(unittest.TestCase):
    def test_files(self) -> None:
        for row in TABLE:
            file = PLUGIN / f"torch_ocl/integrations/{row.library}.py"
            listed = re.search(r"^APPLY = \{(.*?)\}", file.read_text(), re.M | re.S)
            self.assertEqual(re.findall(r'"([\w.]+)":', listed[1]), list(row.modules), file)
            text = (PLUGIN / f"upstream/{row.library}.patch").read_text()
            self.assertRegex(text, r"(?sm)^Subject: .+\n\n.+\n---\n.*^diff --git a/", row.library)

    def test_readme(self) -> None:
        text = (PLUGIN / "torch_ocl/integrations/README.md").read_text()
        rows = re.findall(r"^\| (\w+) \| ([\d.]+) to before ([\d.]+) \|", text, re.M)
        self.assertEqual(rows, [(row.library, row.first, row.before) for row in TABLE])

    def test_setting_is_known(self) -> None:
        self.assertIn(_choice.SETTING, torch.backends.ocl.settings())
        self.assertTrue(torch_ocl.__version__)

    def test_integrations_may_be_asked_by_threads(self) -> None:
        threads = [threading.Thread(target=torch.ocl.integrations) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([s.library for s in torch.ocl.integrations()], [r.library for r in TABLE])


if __name__ == "__main__":
    unittest.main()
