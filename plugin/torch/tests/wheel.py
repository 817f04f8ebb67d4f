"""Builds the wheel torch_ocl and checks it in a fresh environment. Not a unittest: it compiles
everything once more.

usage: wheel.py [--isolated] [--keep FOLDER] [--quick BUILD] [--wheel FILE [--empty TORCH]]

The environment sees the torch of the Python that runs this. By default scikit-build-core is
installed into it and pip builds without isolation; --isolated lets pip fetch what it builds with,
as a user's `pip install` does. --quick compiles nothing: the wheel is put together from the objects
of a build tree, and the checks are the few that matter most. --wheel checks one that is there, such
as those of wheels/wheels.py, and may have binaries for several torches and Pythons; with --empty
2.13.0 pip fetches that torch into an empty environment, and no compiler is in the path. Of one for
another machine the content alone is checked.
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
import sysconfig
import tempfile
import time
import zipfile

from pip._vendor.packaging.requirements import Requirement

PROJECT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "wheels"))

import pack  # noqa: E402  of the folder wheels
import torch_tree  # noqa: E402

README = PROJECT.parents[1] / "README.md"
# What the binaries of the wheel may ask the system for: the C and C++ runtimes, zlib (which
# manylinux counts among the system's libraries), the OpenCL loader, and torch, which `import torch`
# has loaded by then. Each of these is in the wheel, and no other binary is. Digits of a torch's
# version are read as N.
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libstdc++.so.6",
    "libgcc_s.so.1",
}
BINARIES = {
    "torch_ocl/_C_torch": SYSTEM
    | {"libtorch_ocl_torchN.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so"},
    "torch_ocl/lib/libtorch_ocl_torch": SYSTEM | {"libtorch_cpu.so", "libc10.so"},
    "torch_ocl/lib/libocltensor_plugin.so": SYSTEM | {"libOpenCL.so.1", "libz.so.1"},
    "torch_ocl/lib/ocltensor-builder": SYSTEM | {"libOpenCL.so.1", "libz.so.1"},
    "torch_ocl/lib/libocltensor.so": SYSTEM,
}
# Where they look for other libraries of the wheel, and for torch's.
RUNPATHS = {
    "torch_ocl/_C_torch": ["$ORIGIN/lib"],
    "torch_ocl/lib/libtorch_ocl_torch": ["$ORIGIN/../../torch/lib"],
}
# What C++ programs need beside the library.
CXX = {
    "torch_ocl/include/torch_ocl/export.h",
    "torch_ocl/include/torch_ocl/torch_ocl.h",
    "torch_ocl/share/expressions.def",
    "torch_ocl/share/cmake/torch_ocl/torch_ocl-config.cmake",
    "torch_ocl/share/cmake/torch_ocl/torch_ocl-config-version.cmake",
}
# A build tree uses these from the system; the wheel has them inside.
BUNDLED = re.compile(r"lib(fmt|spdlog)\.so")
USE = """
import torch
assert torch.device("ocl").type == "ocl"
assert torch.ocl.is_available(), torch.ocl.unavailable_reason()
model = torch.nn.Linear(4, 2).to("ocl")
before = model.weight.detach().cpu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
model(torch.ones(3, 4, device="ocl")).sum().backward()
optimizer.step()
assert model.weight.grad.cpu().tolist() == [[3.0] * 4] * 2
assert torch.equal(model.weight.detach().cpu(), before - 1.5)
print(torch.ocl.plugin_path())
"""
CHECKS = {
    "the README's lines": (
        {},
        re.search(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)[1],
        lambda out: "tensor(" in out and "device='ocl:0'" in out,
    ),
    "import torch alone": (
        {},
        USE,
        lambda out: "site-packages/torch_ocl/lib/libocltensor_plugin.so" in out,
    ),
    "autoload off": (
        {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        "import torch\nprint(hasattr(torch, 'ocl'))\nimport "
        "torch_ocl\nprint(torch.ocl.is_available())",
        lambda out: out.split() == ["False", "True"],
    ),
    "no device": (
        {"OCLTENSOR_DEVICES": "no such device"},
        "import torch\nprint(torch.ocl.is_available(), torch.ocl.unavailable_reason())",
        lambda out: out.startswith("False ") and "no such device" in out,
    ),
    "documentation": (
        {},
        "import pydoc, torch\nprint(pydoc.render_doc(torch.ocl, renderer=pydoc.plaintext))",
        lambda out: "set_per_process_memory_fraction" in out and "OpenCL" in out,
    ),
    "version": (
        {},
        "import importlib.metadata as m, torch_ocl\nprint(m.version('torch_ocl') == "
        "torch_ocl.__version__)",
        lambda out: out.split() == ["True"],
    ),
}
# Damages to the installed package, each undone afterwards: (file pattern, what must be told).
# `import torch` must work.
DAMAGES = {
    "no adapter for this torch": ("_C_torch*.so", "torch_ocl was built for torch"),
    "no plugin": ("lib/libocltensor_plugin.so", "there is no such file"),
}
QUICK = ("the README's lines", "import torch alone", "version")
TELL = (
    "import torch\nprint(torch.ones(2).sum().item(), torch.ocl.is_available(), "
    "torch.ocl.unavailable_reason())"
)


def call(*command: str | os.PathLike, **environment: str) -> str:
    unset = (
        "PYTHONPATH",
        "OCLTENSOR_PLUGIN_PATH",
        "OCLTENSOR_DEVICES",
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
    )
    env = {k: v for k, v in os.environ.items() if k not in unset} | environment
    done = subprocess.run(
        [str(c) for c in command], env=env, cwd="/", capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(
            f"wheel.py: {' '.join(map(str, command))[:200]} ended with "
            f"{done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


def make_environment(folder: pathlib.Path, empty: bool) -> pathlib.Path:
    """A fresh virtual environment; if it is not to be empty, it sees this Python's packages, but
    not a torch_ocl of theirs."""
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    if empty:
        return folder / "bin" / "python"
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "torch_of_the_caller.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def pip(python: pathlib.Path, *arguments: str | os.PathLike) -> None:
    """This Python's pip, at work in another environment."""
    call(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        *arguments,
        "-q",
        "--disable-pip-version-check",
        **torch_tree.UNCONSTRAINED,
    )


def assemble(build: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A wheel of a build tree's objects, for no other system than this one."""
    call("cmake", "--install", build, "--component", "torch", "--prefix", folder / "tree")
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return pack.pack(folder / "tree", folder, [f"{version}-{version}"], machine)


def build(python: pathlib.Path, folder: pathlib.Path, isolated: bool) -> pathlib.Path:
    options = ["--no-deps", "-w", folder]
    if not isolated:
        pip(python, "install", "scikit-build-core>=0.10")
        options.append("--no-build-isolation")
    start = time.monotonic()
    pip(python, "wheel", *options, PROJECT)
    (wheel,) = folder.glob("torch_ocl-*.whl")
    size = wheel.stat().st_size / 2**20
    print(f"built {wheel.name}, {size:.1f} MiB, in {time.monotonic() - start:.0f} s")
    return wheel


def check_content(
    wheel: pathlib.Path, folder: pathlib.Path, quick: bool, several: bool
) -> list[str]:
    """Complaints about the files of the wheel and what its binaries need. The package's own files
    are read from the sources. `several`: there may be adapters for several torches."""
    bad = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder)
        modes = {n: archive.getinfo(n).external_attr >> 16 for n in names}
    files = (
        f.relative_to(PROJECT)
        for f in (PROJECT / "torch_ocl").rglob("*")
        if f.is_file() and "__pycache__" not in f.parts
    )
    sources = CXX.union(map(str, files))
    found = {kind: [n for n in names if n.startswith(kind)] for kind in BINARIES}
    bad += [f"{name} is missing" for name in sorted(sources - set(names))]
    bad += [
        f"of {kind} there are {len(of_kind)}"
        for kind, of_kind in found.items()
        if not (len(of_kind) == 1 or several and of_kind and kind in RUNPATHS)
    ]
    known = sources.union(*found.values(), (n for n in names if n.endswith("/")))  # and folders
    bad += [f"{n} should not be there" for n in names if n not in known and ".dist-info/" not in n]
    if not any(
        "ocl = torch_ocl:_autoload" in (folder / n).read_text()
        for n in names
        if n.endswith("entry_points.txt")
    ):
        bad.append("there is no entry point torch.backends")
    metadata = (folder / next(n for n in names if n.endswith("/METADATA"))).read_text()
    bad += check_requirement(names, metadata, quick or several)
    for kind, of_kind in found.items():
        for name in of_kind:
            text = call("readelf", "-d", folder / name)
            needed = {
                re.sub(r"(torch)\d+", r"\1N", n) for n in re.findall(r"NEEDED.*\[(.+)\]", text)
            }
            paths = re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", text)
            bad += [
                f"{name} needs {n}"
                for n in sorted(needed - BINARIES[kind])
                if not (quick and BUNDLED.match(n))
            ]
            if paths != RUNPATHS.get(kind, []) and not (quick and kind not in RUNPATHS):
                bad.append(f"{name} looks for libraries in {paths}")
            bad += (
                [f"{name} cannot be executed"]
                if name.endswith("-builder") and not modes[name] & 0o100
                else []
            )
            print(
                f"  {name}: needs {', '.join(sorted(needed - SYSTEM)) or 'the C++ runtime alone'}"
            )
    return bad


def check_requirement(names: list[str], metadata: str, packed: bool) -> list[str]:
    """Complaints about the torches that pip would take beside the wheel: those that it has modules
    for, and no other if wheels/pack.py has made it."""
    built = {int(m[1]) for n in names if (m := re.match(r"torch_ocl/_C_torch2(\d+)\.", n))}
    torch = Requirement(re.search(r"^Requires-Dist: (torch\b.*)", metadata, re.M)[1])
    # A later patch than any that there is, and the minor versions around those that were built.
    taken = {m for m in range(min(built) - 2, max(built) + 3) if f"2.{m}.9" in torch.specifier}
    fits = taken == built if packed else taken >= built
    return [] if fits else [f"built for torch 2.{sorted(built)}, but it asks for {torch}"]


def install_as_user(python: pathlib.Path, wheel: pathlib.Path, torch: str) -> None:
    """pip installs torch and the wheel, and from here on no program but the linker is in the path,
    which PoCL calls. Tells the time to a step of training, with every kernel yet to be compiled."""
    start = time.monotonic()
    pip(python, "install", f"torch=={torch}", wheel)
    size = sum(f.stat().st_size for f in python.parents[1].rglob("*") if f.is_file()) / 2**20
    print(f"  installed with torch {torch}: {size:.0f} MiB, {time.monotonic() - start:.0f} s")
    path = python.parents[2] / "path"
    path.mkdir()
    (path / "ld").symlink_to(str(shutil.which("ld")))
    os.environ["PATH"] = str(path)
    caches = ("POCL_CACHE_DIR", "OCLTENSOR_CACHE_DIR")
    new = {name: str(python.parents[2] / name) for name in caches}
    for folder in new.values():
        os.mkdir(folder)
    start = time.monotonic()
    call(python, "-c", USE, **new)
    print(f"  the first step of training: {time.monotonic() - start:.0f} s")


def check_damages(python: pathlib.Path, package: pathlib.Path) -> list[str]:
    bad = []
    for what, (pattern, told) in DAMAGES.items():
        victims = list(package.glob(pattern))
        for victim in victims:
            victim.rename(victim.with_name(f"aside-{victim.name}"))
        out = call(python, "-W", "ignore", "-c", TELL)
        for victim in victims:
            victim.with_name(f"aside-{victim.name}").rename(victim)
        bad += [] if out.startswith("2.0 False") and told in out else [f"{what}: {out[:500]}"]
    return bad


def report(bad: list[str], checks: int) -> int:
    for line in bad:
        print(f"FAILED: {line}")
    print(f"{checks} checks, {len(bad)} failed")
    return 1 if bad else 0


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--isolated", action="store_true", help="let pip fetch what it builds with")
    p.add_argument(
        "--keep", type=lambda t: pathlib.Path(t).resolve(), help="copy the wheel into this folder"
    )
    p.add_argument(
        "--quick",
        type=lambda t: pathlib.Path(t).resolve(),
        metavar="BUILD",
        help="put it together from this build tree",
    )
    p.add_argument(
        "--wheel", type=lambda t: pathlib.Path(t).resolve(), help="check this one, build none"
    )
    p.add_argument("--empty", metavar="TORCH", help="with --wheel: this release of torch, by pip")
    options = p.parse_args()
    checks = {k: v for k, v in CHECKS.items() if not options.quick or k in QUICK}
    damages = {} if options.quick else DAMAGES
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        python = make_environment(folder / "venv", bool(options.empty))
        if options.wheel:
            wheel = options.wheel
        elif options.quick:
            wheel = assemble(options.quick, folder)
        else:
            wheel = build(python, folder, options.isolated)
        bad = check_content(wheel, folder / "content", bool(options.quick), bool(options.wheel))
        if not wheel.stem.endswith(platform.machine()):
            return report(bad, 1)
        if options.empty:
            install_as_user(python, wheel, options.empty)
        else:
            pip(python, "install", "--no-deps", "--no-index", wheel)
        package = next((folder / "venv").glob("lib/python*/site-packages/torch_ocl"))
        for what, (environment, code, fits) in checks.items():
            out = call(python, "-c", code, **environment)
            bad += [] if fits(out) else [f"{what}: {out[:500]}"]
        bad += check_damages(python, package) if damages else []
        pip(python, "uninstall", "-y", "torch_ocl")
        left = call(python, "-c", "import torch; print(hasattr(torch, 'ocl'))").strip()
        bad += (
            ["torch.ocl is there after uninstalling"] if left != "False" or package.exists() else []
        )
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            shutil.move(wheel, options.keep / wheel.name)
    return report(bad, len(checks) + len(damages) + 2)


if __name__ == "__main__":
    sys.exit(main())
