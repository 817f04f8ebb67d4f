"""Chooses and loads the extension module that was built for the installed torch.

PyTorch's C++ interface changes with each minor version, so there is one module per minor version,
named after it: ``_C_torch213`` is for 2.13. Once loaded it is ``torch_ocl._C``.
"""

import importlib
import pathlib
import re
import sys
from types import ModuleType

import torch

_PREFIX = "_C_torch"


def _built_for() -> list[str]:
    """The torch versions of the modules in this package, e.g. ``["2.11", "2.13"]``."""
    folder = pathlib.Path(__file__).parent
    names = {
        match[1]
        for f in folder.glob(f"{_PREFIX}*")
        if (match := re.match(rf"{_PREFIX}(\d+)\.", f.name))
    }
    return [f"{n[0]}.{n[1:]}" for n in sorted(names, key=int)]


def load() -> ModuleType:
    """Returns the module; ImportError names the torch versions for which there is one."""
    version = str(torch.__version__)
    major, minor = re.match(r"(\d+)\.(\d+)", version).groups()  # type: ignore[union-attr]
    built = _built_for()
    if f"{major}.{minor}" not in built:
        raise ImportError(
            f"torch_ocl was built for torch {' and '.join(built) or '(none)'}, but this is torch "
            f"{version}: install one of those, or build torch_ocl against this torch "
            "(pip install --force-reinstall ./plugin/torch)"
        )
    module = importlib.import_module(f"torch_ocl.{_PREFIX}{major}{minor}")
    sys.modules["torch_ocl._C"] = module
    sys.modules["torch_ocl"]._C = module  # type: ignore[attr-defined]
    return module
