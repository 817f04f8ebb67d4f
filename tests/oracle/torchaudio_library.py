"""Imports torchaudio beside any build of torch.

PyPI's torchaudio is built for CUDA: its extension does not load beside torch's CPU build. All but
the losses and alignments that the extension alone has is written in Python, too, which torchaudio
takes where there is no extension.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import pathlib
import shutil
import sys
import tempfile
from types import ModuleType

# Where `./run test` installs it: transformers imports any torchaudio that it finds.
APART = pathlib.Path(sys.prefix) / "torchaudio"


def load() -> ModuleType | None:
    """torchaudio, if need be without its extension; None where it is not installed."""
    if importlib.util.find_spec("torchaudio") is None:
        sys.path.append(str(APART))
        importlib.invalidate_caches()
    found = importlib.util.find_spec("torchaudio")
    if found is None or not found.submodule_search_locations:
        return None
    try:
        import torchaudio
    except OSError:
        return without_extension(pathlib.Path(found.submodule_search_locations[0]))
    return torchaudio


def without_extension(package: pathlib.Path) -> ModuleType:
    """The package again, with its extension hidden."""
    for name in [n for n in sys.modules if n.split(".")[0] == "torchaudio"]:
        del sys.modules[name]
    hide_extension(package)
    import torchaudio

    return torchaudio


def hide_extension(package: pathlib.Path) -> None:
    """Links to all files of the package but the folder of its extension, found before the
    package. They are there until the process ends: modules that are imported later need them."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    links = folder / "torchaudio"
    links.mkdir()
    for file in package.iterdir():
        if file.name != "lib":
            (links / file.name).symlink_to(file)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def hide_unusable_extension() -> None:
    """Before the first import of the package: hides its extension where that does not load."""
    found = importlib.util.find_spec("torchaudio")
    if found is None or not found.submodule_search_locations:
        return
    package = pathlib.Path(found.submodule_search_locations[0])
    try:
        for extension in package.glob("lib/libtorchaudio*.so"):
            ctypes.CDLL(extension)
    except OSError:
        hide_extension(package)
