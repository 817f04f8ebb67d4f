"""Makes the programs that the plugin asks for on a described device, with the null layer.

They come from the models (models.py), where a Python with torch and the adapter is there, and from
one case of each operator of the conformance kit. The order is that of sources and defines.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import devices

HERE = pathlib.Path(__file__).resolve().parent
# Kernels of which the kit makes hundreds that differ in one expression: so many of each source.
MOST_OF_KIT = 8
MOST_OF_QUICK = 3  # of all that the gate compiles
OF_DEVICE = ("COPIES_STRUCTURES", "OUTLINED", "STEPS_AT_ONCE")  # defines of all its programs
POCL = pathlib.Path("/etc/OpenCL/vendors/pocl.icd")
KIT = ("--quick", "--cases", "1", "--check", "^$", "--dtype")
KIT_DTYPES = "float32,int64"
QUICK_MODELS = ("float32", "amp")


@dataclasses.dataclass
class Program:
    source: str  # "conv/implicit.cl"
    form: str  # its defines, "BM=64,TM=8,TYPE=f32"
    path: pathlib.Path
    options: str
    # Kernel to items of its largest work-group and bytes of local memory that its caller gives it.
    launches: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)

    def text(self) -> str:
        return self.path.read_text(errors="replace")


@dataclasses.dataclass(frozen=True)
class Built:
    """What a build tree gives."""

    layer: pathlib.Path
    plugin: pathlib.Path
    kit: pathlib.Path
    adapter: pathlib.Path  # folder of torch_ocl
    python: str  # that has torch; empty: there is none

    def missing(self) -> list[str]:
        return [str(p) for p in (self.layer, self.plugin, self.kit) if not p.is_file()]


def built_in(folder: pathlib.Path, python: str) -> Built:
    adapter = folder / "torch"
    return Built(
        layer=folder / "lib/libnull_layer.so",
        plugin=folder / "lib/libocltensor_plugin.so",
        kit=folder / "bin/ocltensor-conformance",
        adapter=adapter,
        python=python if python and adapter.is_dir() else "",
    )


def described(path: pathlib.Path) -> tuple[str, str]:
    """The source's name and its defines, of a program as the plugin puts it together."""
    head, _, rest = path.read_text(errors="replace").partition('#line 1 "')
    defines = re.findall(r"(?m)^#define (\S+) ?(.*)$", head)
    own = sorted(d for d in defines if d[0] not in OF_DEVICE)
    form = ",".join(f"{name}={value.strip()}" for name, value in own)
    return rest.partition('"')[0] or "custom", form


def read(folder: pathlib.Path) -> list[Program]:
    launches: dict[str, dict] = collections.defaultdict(dict)
    for file in folder.glob("launches.*"):
        for line in file.read_text().splitlines():
            name, kernel, local, _, size = line.split()
            items = 1
            for n in local.split("x"):
                items *= int(n)
            before = launches[name].get(kernel, (0, 0))
            launches[name][kernel] = (max(items, before[0]), max(int(size), before[1]))
    programs = []
    for path in folder.glob("*.cl"):
        source, form = described(path)
        options = path.with_suffix(".opt").read_text()
        programs.append(Program(source, form, path, options, launches.get(path.stem, {})))
    return sorted(programs, key=lambda p: (p.source, p.form, p.path.stem))


def few_of_each(programs: list[Program], most: int) -> list[Program]:
    """Of each source at most so many, which others that come and go do not change."""
    of_source: dict[str, list[Program]] = collections.defaultdict(list)
    for program in programs:
        of_source[program.source].append(program)

    def place(program: Program) -> str:
        return hashlib.md5(program.form.encode(), usedforsecurity=False).hexdigest()

    chosen = [p for group in of_source.values() for p in sorted(group, key=place)[:most]]
    return sorted(chosen, key=lambda p: (p.source, p.form, p.path.stem))


def stamp_of(built: Built, device: devices.Device, parts: list[str]) -> str:
    digest = hashlib.sha256(repr((device.flat(), parts)).encode())
    for file in (built.layer, built.plugin, built.kit, HERE / "models.py"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def make(built: Built, device: devices.Device, folder: pathlib.Path, quick: bool) -> list[Program]:
    """The device's programs, from the folder where plugin and models are as they were."""
    models = list(QUICK_MODELS) if quick else []
    parts = ["kit", *(["models", *models] if built.python else [])]
    stamp, wanted = folder / "stamp", stamp_of(built, device, parts)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("kit", "models"):
            (folder / part).mkdir(parents=True)
        (folder / "device").write_text(device.flat())
        env = {
            # Settings of the caller's would make another corpus.
            **{k: v for k, v in os.environ.items() if not k.startswith("OCLTENSOR_")},
            **({"OCL_ICD_VENDORS": str(POCL)} if POCL.exists() else {}),
            "OPENCL_LAYERS": str(built.layer),
            "FARM_DEVICE": str(folder / "device"),
            "OCLTENSOR_BUILD_AHEAD": "0",
            "OCLTENSOR_CACHE_DIR": str(folder / "plugin-cache"),
            "OCLTENSOR_LOG_LEVEL": "off",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "PYTHONPATH": str(built.adapter),
        }
        kit = [str(built.kit), "--plugin", str(built.plugin), *KIT, KIT_DTYPES]
        # Zeros are wrong results, so it fails; that it asked for programs is what matters.
        subprocess.run(
            kit, env={**env, "FARM_DUMP": str(folder / "kit")}, capture_output=True, check=False
        )
        if built.python:
            command = [built.python, str(HERE / "models.py"), *models]
            env["FARM_DUMP"] = str(folder / "models")
            if subprocess.run(command, env=env, check=False).returncode != 0:
                sys.exit(f"compile-farm: models.py failed as {device.name}: see above")
        if not list(folder.glob("kit/*.cl")):
            sys.exit(f"compile-farm: the kit asked for no program as {device.name}")
        stamp.write_text(wanted)
    programs = {p.path.stem: p for p in few_of_each(read(folder / "kit"), MOST_OF_KIT)}
    for program in read(folder / "models"):
        programs[program.path.stem] = program
    found = sorted(programs.values(), key=lambda p: (p.source, p.form, p.path.stem))
    return few_of_each(found, MOST_OF_QUICK) if quick else found
