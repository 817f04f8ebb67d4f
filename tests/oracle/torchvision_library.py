"""Imports torchvision beside any build of torch.

PyPI's torchvision is built for CUDA: its extension names two libraries that torch's CPU build does
not have, although it calls nothing of them for tensors elsewhere. Libraries of those names without
functions let it be loaded; functions that it misses would end the process where they are called.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
from types import ModuleType

import torch

# The extension reads the address of the one variable; the other library needs to exist only.
MISSING = {
    "libc10_cuda.so": "char _ZN3c104cuda20CUDACachingAllocator9allocatorE[64];",
    "libtorch_cuda.so": "typedef int nothing;",
}


# Where `./run test` installs it, out of sight of packages that import any torchvision.
APART = pathlib.Path(sys.prefix) / "torchvision"


def load() -> ModuleType | None:
    """torchvision with its operators; None where it is not installed, or does not fit torch."""
    if not load_extension():
        return None
    try:
        import torchvision
    except (ImportError, RuntimeError):
        return None
    return torchvision


def load_extension() -> bool:
    """Loads its operators, without which the package cannot be imported; False where it is not
    installed."""
    found = importlib.util.find_spec("torchvision")
    if found is None and APART.is_dir():
        sys.path.append(str(APART))
        found = importlib.util.find_spec("torchvision")
    if found is None or not found.submodule_search_locations:
        return False
    extensions = pathlib.Path(found.submodule_search_locations[0]).glob("_C*.so")
    extension = next(extensions, None)
    if extension is None:
        return False
    try:
        torch.ops.load_library(extension)
    except OSError:
        # A compiler may be missing; where another library is, the import of the package says so.
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            load_without_cuda(extension)
    return True


def load_without_cuda(extension: pathlib.Path) -> None:
    """Loads the extension with functions bound when they are called, which ctypes does not."""
    system = ctypes.CDLL(None)
    system.dlopen.restype = ctypes.c_void_p
    system.dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    with tempfile.TemporaryDirectory() as folder:
        for name, source in MISSING.items():
            file = pathlib.Path(folder) / name
            command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-o"]
            subprocess.run([*command, file], input=source.encode(), check=True, capture_output=True)
            system.dlopen(bytes(file), os.RTLD_LAZY | os.RTLD_GLOBAL)
        system.dlopen(bytes(extension), os.RTLD_LAZY | os.RTLD_GLOBAL)
