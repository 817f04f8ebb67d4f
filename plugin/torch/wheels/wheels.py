"""Builds wheels of torch_ocl for several releases of torch and for both machines, without a
container: one wheel per machine, which serves every torch and Python that it was built for.

usage: wheels.py [--torch 2.11.0,2.13.0] [--machine x86_64,aarch64] [--python FILE] [--out FOLDER]
                 [--work FOLDER] [--jobs N] | --built FOLDER

It takes Debian's g++ (for the other machine also g++-aarch64-linux-gnu), CMake, Ninja, and pip's
access to PyPI: torch's own wheels give headers and link libraries. Everything is kept in the work
folder, so that a second run compiles what has changed. --built compiles nothing: it packs what a
build tree has, for this machine alone, and lets auditwheel bring the libraries that it was linked
with. README.md has the reasons.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

import pack
import sysroot
import torch_tree

ROOT = pack.PROJECT.parents[1]
# The releases whose headers the library is compiled against: the newest patch of each minor version
# (PyTorch keeps its C++ interface within a minor version).
TORCH = ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "OCLTENSOR_BUILD_TORCH": "ON",
    "OCLTENSOR_BUNDLE_DEPENDENCIES": "ON",
    "OCLTENSOR_BUILD_TESTS": "OFF",
    "OCLTENSOR_BUILD_BENCH": "OFF",
    "SKBUILD": "ON",
}
TARGETS = ("torch_ocl_adapter", "ocltensor_plugin", "ocltensor-builder", "ocltensor")
TORCH_LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so")


def run(*command: object, env: dict[str, str] | None = None) -> None:
    subprocess.run([str(part) for part in command], check=True, env=env)


def headers_of(python: str) -> tuple[str, str]:
    """The version ("312") of another Python, and its headers."""
    code = "import sys, sysconfig as s; print('%d%d' % sys.version_info[:2], s.get_path('include'))"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    version, folder = done.stdout.split()
    if not (pathlib.Path(folder) / "Python.h").is_file():
        sys.exit(f"{python} has no headers in {folder}")
    return version, folder


def pythons_for(machine: str, root: pathlib.Path, others: list[str]) -> dict[str, str]:
    """Versions of Python and their headers. Debian's is in the sysroot; those of other Pythons are
    for the machine that they run on."""
    found = {"311": str(root / "usr/include/python3.11")}
    if machine == platform.machine():
        found |= dict(headers_of(python) for python in others)
    return found


def build(machine: str, version: str, pythons: dict[str, str], options: argparse.Namespace) -> None:
    """Compiles the adapter for one torch, and what does not depend on torch if it is not there."""
    root = sysroot.make(machine, options.work)
    tree = torch_tree.fetch(version, machine, options.work)
    folder = options.work / f"build-{machine}"
    defines = OPTIONS | {
        "CMAKE_TOOLCHAIN_FILE": root / "toolchain.cmake",
        "OCLTENSOR_LIBTORCH": tree,
        "OCLTENSOR_PYTHON_HEADERS": ";".join(
            f".cpython-{python}-{machine}-linux-gnu.so={headers}"
            for python, headers in pythons.items()
        ),
    }
    if shutil.which("ccache"):
        defines |= {f"CMAKE_{name}_COMPILER_LAUNCHER": "ccache" for name in ("C", "CXX")}
    run(
        "cmake",
        "-S",
        ROOT,
        "-B",
        folder,
        "-G",
        "Ninja",
        *(f"-D{k}={v}" for k, v in defines.items()),
    )
    run("cmake", "--build", folder, "-j", options.jobs, "--target", *TARGETS)
    stage = options.work / f"stage-{machine}"
    run("cmake", "--install", folder, "--component", "torch", "--strip", "--prefix", stage)


def audit(wheel: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """auditwheel's own wheel of it: checked for the symbols and libraries that it asks the system
    for, and with the platform's tag, which auditwheel finds ("auto": others it takes for this
    machine alone). torch's libraries stay outside."""
    exclude = [part for name in TORCH_LIBRARIES for part in ("--exclude", name)]
    where = {"PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    before = set(out.glob("*.whl"))
    run(
        *(sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", *exclude),
        *("--only-plat", "-w", out, wheel),
        env=os.environ | where,
    )
    (made,) = set(out.glob("*.whl")) - before
    return made


def check_tag(wheel: pathlib.Path) -> None:
    """Ends the program if a wheel asks for a later C library than that of the sysroot."""
    tag = re.search(r"manylinux_2_(\d+)_", wheel.name)
    if not tag or int(tag[1]) > int(sysroot.GLIBC.partition(".")[2]):
        sys.exit(f"{wheel.name} does not run with glibc {sysroot.GLIBC}; auditwheel show tells why")


def report(wheel: pathlib.Path, stage: pathlib.Path, seconds: float) -> None:
    print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB, {seconds:.0f} s")
    for file in sorted(stage.rglob("*")):
        if file.suffix == ".so" or file.name.endswith("-builder"):
            print(f"  {file.stat().st_size / 2**20:6.2f} MiB  {file.relative_to(stage)}")


def finish(
    stage: pathlib.Path, machine: str, pythons: list[str], options: argparse.Namespace
) -> pathlib.Path:
    """The wheel of a stage for these Pythons ("311"), in place of an older one for the machine."""
    for old in options.out.glob(f"torch_ocl-*_{machine}.whl"):
        old.unlink()
    tags = [f"cp{python}-cp{python}" for python in sorted(pythons, key=int)]
    if len(tags) > 1:
        tags = [re.sub(r"-.*", "-none", t) for t in tags]
    unchecked = pack.pack(stage, options.work, tags, f"linux_{machine}")
    made = audit(unchecked, options.out)
    unchecked.unlink()
    return made


def pack_built(folder: pathlib.Path, options: argparse.Namespace) -> None:
    """The wheel of a build tree, for the Python and the C library that it was built with."""
    start, stage = time.monotonic(), options.work / "stage-built"
    shutil.rmtree(stage, ignore_errors=True)
    run("cmake", "--install", folder, "--component", "torch", "--strip", "--prefix", stage)
    names = " ".join(file.name for file in stage.rglob("_C_torch*.so"))
    pythons = re.findall(r"cpython-(\d+)", names)
    made = finish(stage, platform.machine(), pythons, options)
    report(made, stage, time.monotonic() - start)


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--torch", default=",".join(TORCH), help="releases, separated by commas")
    p.add_argument("--machine", default=platform.machine(), help="x86_64, aarch64, or both")
    p.add_argument("--python", action="append", default=[], help="another Python with headers")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "build/wheels")
    p.add_argument("--work", type=pathlib.Path, default=ROOT / "build/wheels-work")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--built", type=pathlib.Path, metavar="FOLDER", help="pack this build tree")
    options = p.parse_args()
    options.out, options.work = options.out.resolve(), options.work.resolve()
    for folder in (options.out, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    if options.built:
        pack_built(options.built, options)
        return
    for machine in options.machine.split(","):
        start = time.monotonic()
        stage = options.work / f"stage-{machine}"
        shutil.rmtree(stage, ignore_errors=True)
        pythons = pythons_for(machine, sysroot.make(machine, options.work), options.python)
        for version in options.torch.split(","):
            build(machine, version, pythons, options)
        made = finish(stage, machine, list(pythons), options)
        check_tag(made)
        report(made, stage, time.monotonic() - start)


if __name__ == "__main__":
    main()
