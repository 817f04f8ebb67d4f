"""Builds the wheel torch_ocl and checks it in a fresh environment. Not a unittest: it compiles everything once more.

usage: wheel.py [--isolated] [--keep FOLDER]

The environment sees the torch of the Python that runs this. By default scikit-build-core is installed into it and pip
builds without isolation; --isolated lets pip fetch what it builds with, as a user's `pip install` does.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile

PROJECT = pathlib.Path(__file__).resolve().parents[1]
# What the libraries of the wheel may ask the system for: the C and C++ runtimes, zlib (which manylinux counts among the
# system's libraries), the OpenCL loader, and torch, which `import torch` has loaded by then.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1"}
ALLOWED = {
    "_C_torch": SYSTEM | {"libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so"},
    "libocltensor_plugin": SYSTEM | {"libOpenCL.so.1", "libz.so.1"},
    "libocltensor": SYSTEM,
}
USE = """
import torch
assert torch.device("ocl").type == "ocl" and torch.ocl.is_available(), torch.ocl.unavailable_reason()
model = torch.nn.Linear(4, 2).to("ocl")
model(torch.ones(3, 4, device="ocl")).sum().backward()
assert model.weight.grad.cpu().tolist() == [[3.0] * 4] * 2
print(torch.ocl.plugin_path())
"""
CHECKS = {
    "import torch alone": ({}, USE, lambda out: "site-packages/torch_ocl/lib/libocltensor_plugin.so" in out),
    "autoload off": (
        {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        "import torch\nprint(hasattr(torch, 'ocl'))\nimport torch_ocl\nprint(torch.ocl.is_available())",
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
        "import importlib.metadata as m, torch_ocl\nprint(m.version('torch_ocl') == torch_ocl.__version__, m.requires('torch_ocl'))",
        lambda out: out.startswith("True") and "torch<2.14,>=2.11" in out,
    ),
}
# Damages to the installed package, each undone afterwards: (file pattern, what must be told). `import torch` must work.
DAMAGES = {
    "no adapter for this torch": ("_C_torch*.so", "torch_ocl was built for torch"),
    "no plugin": ("lib/libocltensor_plugin.so", "there is no such file"),
}
TELL = "import torch\nprint(torch.ones(2).sum().item(), torch.ocl.is_available(), torch.ocl.unavailable_reason())"


def call(*command: str | os.PathLike, **environment: str) -> str:
    unset = ("PYTHONPATH", "OCLTENSOR_PLUGIN_PATH", "OCLTENSOR_DEVICES", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    env = {k: v for k, v in os.environ.items() if k not in unset} | environment
    done = subprocess.run([str(c) for c in command], env=env, cwd="/", capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"wheel.py: {' '.join(map(str, command))[:200]} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def make_environment(folder: pathlib.Path) -> pathlib.Path:
    """A fresh virtual environment that sees this Python's packages, but not a torch_ocl of theirs."""
    call(sys.executable, "-m", "venv", folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "torch_of_the_caller.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def build(python: pathlib.Path, folder: pathlib.Path, isolated: bool) -> pathlib.Path:
    options = ["--no-deps", "--disable-pip-version-check", "-q", "-w", folder]
    if not isolated:
        call(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "scikit-build-core>=0.10")
        options.append("--no-build-isolation")
    start = time.monotonic()
    call(python, "-m", "pip", "wheel", *options, PROJECT)
    (wheel,) = folder.glob("torch_ocl-*.whl")
    size = wheel.stat().st_size / 2**20
    print(f"built {wheel.name}, {size:.1f} MiB, in {time.monotonic() - start:.0f} s")
    return wheel


def check_content(wheel: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Complaints about the files of the wheel and what its libraries need."""
    bad = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder)
    sources = {f"torch_ocl/{f.name}" for f in (PROJECT / "torch_ocl").iterdir() if f.is_file()}
    libraries = [n for n in names if n.endswith(".so")]
    bad += [f"{name} is missing" for name in sorted(sources - set(names))]
    others = [n for n in names if n not in sources and n not in libraries and ".dist-info/" not in n]
    bad += [f"{name} should not be there" for name in others]
    if sorted(n.split("/")[-1].split(".")[0] for n in libraries)[1:] != ["libocltensor", "libocltensor_plugin"]:
        bad.append(f"the libraries are {libraries}")
    if not any("ocl = torch_ocl:_autoload" in (folder / n).read_text() for n in names if n.endswith("entry_points.txt")):
        bad.append("there is no entry point torch.backends")
    for name in libraries:
        text = call("readelf", "-d", folder / name)
        needed = set(re.findall(r"NEEDED.*\[(.+)\]", text))
        kind = next(k for k in ALLOWED if pathlib.PurePath(name).name.startswith(k))
        bad += [f"{name} needs {library}" for library in sorted(needed - ALLOWED[kind])]
        bad += [f"{name} has {path}" for path in re.findall(r"(?:RPATH|RUNPATH).*", text)]
        print(f"  {name}: needs {', '.join(sorted(needed - SYSTEM)) or 'the C++ runtime alone'}")
    return bad


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--isolated", action="store_true", help="let pip fetch what it builds with")
    p.add_argument("--keep", type=pathlib.Path, help="copy the wheel into this folder")
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        python = make_environment(folder / "venv")
        wheel = build(python, folder, options.isolated)
        bad = check_content(wheel, folder / "content")
        call(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", wheel)
        package = next((folder / "venv").glob("lib/python*/site-packages/torch_ocl"))
        for what, (environment, code, fits) in CHECKS.items():
            out = call(python, "-c", code, **environment)
            bad += [] if fits(out) else [f"{what}: {out[:500]}"]
        for what, (pattern, told) in DAMAGES.items():
            (victim,) = package.glob(pattern)
            aside = victim.with_name("aside")
            victim.rename(aside)
            out = call(python, "-W", "ignore", "-c", TELL)
            aside.rename(victim)
            bad += [] if out.startswith("2.0 False") and told in out else [f"{what}: {out[:500]}"]
        call(python, "-m", "pip", "uninstall", "-q", "-y", "torch_ocl")
        left = call(python, "-c", "import torch; print(hasattr(torch, 'ocl'))").strip()
        bad += ["torch.ocl is there after uninstalling"] if left != "False" or package.exists() else []
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            wheel.rename(options.keep / wheel.name)
    for line in bad:
        print(f"FAILED: {line}")
    print(f"{len(CHECKS) + len(DAMAGES) + 2} checks, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
