"""Runs ComfyUI's main.py, in the folder at hand, beside torch's CPU build: PyPI's torchvision and
torchaudio then need help to be imported (tests/oracle/torch*_library.py). Nothing is imported
earlier."""

import importlib
import importlib.abc
import pathlib
import runpy
import sys

ORACLE = pathlib.Path(__file__).resolve().parents[3] / "tests/oracle"
HELP = {"torchvision": "load_extension", "torchaudio": "hide_unusable_extension"}


class Finder(importlib.abc.MetaPathFinder):
    """Helps before the Python files of such a package are imported, and finds nothing itself."""

    def find_spec(self, name, path, target=None):  # noqa: ANN001, ANN201
        if name in HELP:
            function = HELP.pop(name)
            if str(ORACLE) not in sys.path:
                sys.path.append(str(ORACLE))
            getattr(importlib.import_module(f"{name}_library"), function)()
        return None


sys.meta_path.insert(0, Finder())
sys.path.insert(0, str(pathlib.Path.cwd()))
sys.argv[0] = "main.py"
runpy.run_path("main.py", run_name="__main__")
