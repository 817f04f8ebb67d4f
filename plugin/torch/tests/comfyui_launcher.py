"""Runs ComfyUI's main.py, in the folder at hand, beside torch's CPU build: PyPI's torchvision then
needs help to be imported (tests/oracle/torchvision_library.py). Nothing is imported earlier."""

import importlib.abc
import importlib.machinery
import pathlib
import runpy
import sys

ORACLE = pathlib.Path(__file__).resolve().parents[3] / "tests/oracle"


class Finder(importlib.abc.MetaPathFinder):
    """Loads torchvision's extension before its Python files are imported."""

    def find_spec(self, name, path, target=None):  # noqa: ANN001, ANN201
        if name == "torchvision":
            sys.meta_path.remove(self)
            sys.path.append(str(ORACLE))
            import torchvision_library

            torchvision_library.load_extension()
        return None


sys.meta_path.insert(0, Finder())
sys.path.insert(0, str(pathlib.Path.cwd()))
sys.argv[0] = "main.py"
runpy.run_path("main.py", run_name="__main__")
