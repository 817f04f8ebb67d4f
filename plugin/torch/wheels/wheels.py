"""Builds wheels of torch_ocl for several releases of torch and for both machines, without a
container: one wheel per machine, which serves every torch and Python that it was built for.

usage: wheels.py [--torch 2.11.0,2.13.0] [--arch x86_64,aarch64] [--python FILE] [--out FOLDER]
                 [--work FOLDER] [--jobs N] | --built FOLDER

Without --torch and --arch it builds all that are released (RELEASED); --torch alone is for this
machine. It takes Debian's g++ (for the other machine also g++-aarch64-linux-gnu), CMake, Ninja, and
pip's access to PyPI: torch's own wheels give headers and link libraries. Everything is kept in the
work folder, so that a second run compiles what has changed. --built compiles nothing: it packs what
a build tree has, for this machine alone, and lets auditwheel bring the libraries that it was linked
with. README.md has the reasons.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
from typing import Any

import pack
import sysroot
import torch_tree

ROOT = pack.PROJECT.parents[1]
# The releases whose headers the library is compiled against: the newest patch of each minor version
# (PyTorch keeps its C++ interface within a minor version).
TORCH = ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
RELEASED = {"x86_64": TORCH, "aarch64": ("2.13.0",)}
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


def run(*command: object, **options: Any) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)


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


@dataclasses.dataclass
class Wheel:
    """A wheel that was made, as a row of the summary."""

    file: pathlib.Path
    torches: list[str]
    pythons: list[str]
    seconds: float

    def row(self) -> tuple[str, ...]:
        size = f"{self.file.stat().st_size / 2**20:.1f} MiB"
        tag = self.file.stem.rpartition("-")[2]
        of = " ".join(self.torches), " ".join(self.pythons)
        return self.file.name, size, *of, tag, f"{self.seconds:.0f} s"


def say(text: str) -> None:
    print(f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text, flush=True)


def build(
    machine: str, tree: pathlib.Path, pythons: dict[str, str], options: argparse.Namespace
) -> None:
    """Compiles the adapter for one torch, and what does not depend on torch if it is not there."""
    folder = options.work / f"build-{machine}"
    defines = OPTIONS | {
        "CMAKE_TOOLCHAIN_FILE": sysroot.make(machine, options.work) / "toolchain.cmake",
        "OCLTENSOR_LIBTORCH": tree,
        "OCLTENSOR_PYTHON_HEADERS": ";".join(
            f".cpython-{python}-{machine}-linux-gnu.so={headers}"
            for python, headers in pythons.items()
        ),
    }
    if shutil.which("ccache"):
        defines |= {f"CMAKE_{name}_COMPILER_LAUNCHER": "ccache" for name in ("C", "CXX")}
    given = [f"-D{k}={v}" for k, v in defines.items()]
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "--log-level=NOTICE", *given)
    run("cmake", "--build", folder, "-j", options.jobs, "--target", *TARGETS)
    install(folder, options.work / f"stage-{machine}")


def install(folder: pathlib.Path, stage: pathlib.Path) -> None:
    command = ["cmake", "--install", folder, "--component", "torch", "--strip", "--prefix", stage]
    run(*command, stdout=subprocess.DEVNULL)


def audit(wheel: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """auditwheel's own wheel of it: checked for the symbols and libraries that it asks the system
    for, and with the platform's tag, which auditwheel finds ("auto": others it takes for this
    machine alone). torch's libraries stay outside."""
    exclude = [part for name in TORCH_LIBRARIES for part in ("--exclude", name)]
    where = {"PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    before = set(out.glob("*.whl"))
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", *exclude]
        + ["--only-plat", "-w", str(out), str(wheel)],
        env=os.environ | where,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"auditwheel refuses {wheel.name}:\n{done.stdout}{done.stderr}")
    (made,) = set(out.glob("*.whl")) - before
    return made


def check_tag(wheel: pathlib.Path) -> None:
    """Ends the program if a wheel asks for a later C library than that of the sysroot."""
    tag = re.search(r"manylinux_2_(\d+)_", wheel.name)
    if not tag or int(tag[1]) > int(sysroot.GLIBC.partition(".")[2]):
        sys.exit(f"{wheel.name} does not run with glibc {sysroot.GLIBC}; auditwheel show tells why")


def report(stage: pathlib.Path) -> None:
    """The sizes of a stage's binaries."""
    for file in sorted(stage.rglob("*")):
        if file.suffix == ".so" or file.name.endswith("-builder"):
            print(f"  {file.stat().st_size / 2**20:6.2f} MiB  {file.relative_to(stage)}")


def summary(made: list[Wheel]) -> str:
    rows = [("file", "size", "torch", "Python", "runs with", "time"), *(w.row() for w in made)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


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


def pack_built(folder: pathlib.Path, options: argparse.Namespace) -> Wheel:
    """The wheel of a build tree, for the Python and the C library that it was built with."""
    start, stage = time.monotonic(), options.work / "stage-built"
    shutil.rmtree(stage, ignore_errors=True)
    install(folder, stage)
    names = " ".join(file.name for file in stage.rglob("_C_torch*.so"))
    pythons = re.findall(r"cpython-(\d+)", names)
    made = finish(stage, platform.machine(), pythons, options)
    report(stage)
    torches = [f"{a}.{b}" for a, b in re.findall(r"_C_torch(\d)(\d+)", names)]
    return Wheel(made, torches, pythons, time.monotonic() - start)


def chosen(options: argparse.Namespace) -> dict[str, list[str]]:
    """The torches to build for, of each machine."""
    machines = options.arch.split(",") if options.arch else [platform.machine()]
    if not options.arch and not options.torch:
        machines = list(RELEASED)
    unknown = set(machines) - set(RELEASED)
    if unknown:
        sys.exit(f"there are wheels for {', '.join(RELEASED)} alone, not for {', '.join(unknown)}")
    torches = options.torch.split(",") if options.torch else None
    return {machine: list(torches or RELEASED[machine]) for machine in machines}


def build_wheel(machine: str, trees: dict[str, pathlib.Path], options: argparse.Namespace) -> Wheel:
    """The wheel of one machine for all torches, whose headers are in `trees`."""
    start = time.monotonic()
    stage = options.work / f"stage-{machine}"
    shutil.rmtree(stage, ignore_errors=True)
    pythons = pythons_for(machine, sysroot.make(machine, options.work), options.python)
    for number, (version, tree) in enumerate(trees.items(), 1):
        began = time.monotonic()
        say(f"{machine}: torch {version} ({number} of {len(trees)})")
        build(machine, tree, pythons, options)
        print(f"{machine}: torch {version} took {time.monotonic() - began:.0f} s", flush=True)
    made = finish(stage, machine, list(pythons), options)
    check_tag(made)
    report(stage)
    return Wheel(made, list(trees), list(pythons), time.monotonic() - start)


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--torch", help="releases, separated by commas")
    p.add_argument("--arch", help="x86_64, aarch64, or both, separated by a comma")
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
        print(summary([pack_built(options.built, options)]))
        return
    trees: dict[str, dict[str, pathlib.Path]] = {}
    for machine, versions in chosen(options).items():  # all that is downloaded, first
        say(f"{machine}: the C library, and headers of torch {', '.join(versions)}")
        sysroot.make(machine, options.work)
        trees[machine] = {v: torch_tree.fetch(v, machine, options.work) for v in versions}
    made = [build_wheel(machine, of_machine, options) for machine, of_machine in trees.items()]
    say(f"In {options.out}:")
    print(summary(made))


if __name__ == "__main__":
    main()
