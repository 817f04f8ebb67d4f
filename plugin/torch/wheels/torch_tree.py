"""Fetches what building against a release of torch takes: its headers and link libraries.

The release is downloaded by pip as a wheel, and all but these files is thrown away: a tree of 2.13
has 90 MiB for the headers and 260 MiB for the libraries, the wheel itself up to 900 MiB.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so")
# Torch's own wheels ask for this platform since 2.6.
PLATFORM = "manylinux_2_28"
# A file of the user's or the system's may hold torch below some version, and all that pip says is
# "ResolutionImpossible"; here every release is asked for by its name.
UNCONSTRAINED = {"PIP_CONSTRAINT": os.devnull}


def is_wanted(name: str) -> bool:
    return (
        name.startswith("torch/include/")
        or name == "torch/version.py"
        or (name.startswith("torch/lib/") and name.rpartition("/")[2] in LIBRARIES)
    )


def download(version: str, machine: str, python: str, folder: pathlib.Path) -> pathlib.Path:
    """The wheel of torch `version` (exact) for `machine` and a Python such as "311"."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    command += ["--platform", f"{PLATFORM}_{machine}", "--python-version", python]
    command += ["--implementation", "cp", "--abi", f"cp{python}", "-d", str(folder)]
    subprocess.run([*command, f"torch=={version}"], check=True, env=os.environ | UNCONSTRAINED)
    (wheel,) = folder.glob("torch-*.whl")
    return wheel


def fetch(
    version: str, machine: str, trees: pathlib.Path, python: str = "311", wheel: str | None = None
) -> pathlib.Path:
    """The folder `torch` with headers and libraries below `trees`; made if it is not there.

    `wheel` names a file that is already on the disk.
    """
    tree = trees / f"torch-{version}-{machine}"
    if (tree / "torch/version.py").is_file():
        return tree / "torch"
    trees.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=trees) as name:
        scratch = pathlib.Path(name)
        source = pathlib.Path(wheel) if wheel else download(version, machine, python, scratch)
        with zipfile.ZipFile(source) as archive:
            archive.extractall(scratch / "tree", filter(is_wanted, archive.namelist()))
        (scratch / "tree").rename(tree)
    return tree / "torch"
