"""Reads the descriptions of devices, devices/*.toml, and writes them as the null layer reads them.

usage: devices.py              one line a device
       devices.py caps NAME    OCLTENSOR_CAPS, by which another device has no more than this one
       devices.py profiles     writes src/base/device_profiles.def, the profiles of these names
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import textwrap

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

FOLDER = pathlib.Path(__file__).parent / "devices"
PROFILES = pathlib.Path(__file__).parents[2] / "src" / "base" / "device_profiles.def"

TYPES = {"gpu": 1 << 2, "accelerator": 1 << 3}
# CL_DEVICE_SINGLE_FP_CONFIG: denormals, infinities, to nearest, fused; division rounded right.
FLOAT32 = 1 | 2 | 4 | 32
EXACT_DIVISION = 128


@dataclasses.dataclass(frozen=True)
class Unit:
    """A compute unit, for arithmetic on how many waves fit."""

    wave: int
    simds: int
    waves: int  # of a SIMD; 0: not known
    registers: int  # of a SIMD, for each lane; 0: waves do not depend on them
    granule: int
    item_registers: int
    local_memory: int


@dataclasses.dataclass(frozen=True)
class Device:
    name: str  # of the file
    title: str
    compiler: str
    target: str
    least_version: int
    answers: dict
    unit: Unit
    facts: list

    def flat(self) -> str:
        """Lines KEY VALUE for the null layer."""
        a = self.answers
        rows = {k: a[k] for k in ("name", "vendor", "platform", "driver", "language", "work_group")}
        rows |= {k: a[k] for k in ("local_memory", "global_memory", "largest_allocation")}
        rows |= {k: a[k] for k in ("compute_units", "clock")}
        rows["type"] = TYPES[a["type"]]
        rows["unified_memory"] = int(a["unified_memory"])
        rows["float32"] = FLOAT32 | (EXACT_DIVISION if a["exact_division"] else 0)
        rows["extensions"] = " ".join(a["extensions"].split())
        if "cl_amd_device_attribute_query" in a["extensions"].split():
            rows["wavefront"] = self.unit.wave
        if "sub_groups" in a:
            rows["sub_groups"] = " ".join(map(str, a["sub_groups"]))
        if "compute_capability" in a:
            rows["compute_capability_major"], rows["compute_capability_minor"] = a[
                "compute_capability"
            ]
            rows["warp"] = self.unit.wave
        return "".join(f"{k} {v}\n" for k, v in sorted(rows.items()))


# Capability to the extension without which it is taken away.
EXTENSIONS = {
    "fp64": "cl_khr_fp64",
    "fp16": "cl_khr_fp16",
    "subgroups": "_subgroups",
    "int64_atomics": "cl_khr_int64_base_atomics",
}


def caps(device: Device) -> str:
    there = device.answers["extensions"].split()
    limits = [f"{cap}=0" for cap, e in EXTENSIONS.items() if not any(t.endswith(e) for t in there)]
    limits += [
        f"{cap}=0" for cap in ("exact_division", "unified_memory") if not device.answers[cap]
    ]
    limits += [f"{cap}={device.answers[cap]}" for cap in ("work_group", "local_memory")]
    limits += [f"item_registers={device.unit.item_registers}"]
    if "compute_capability" in device.answers:
        major, minor = device.answers["compute_capability"]
        limits += [f"compute_capability={10 * major + minor}"]
    return ",".join(limits + [fact["caps"] for fact in device.facts if "caps" in fact])


def profiles() -> str:
    """The text of device_profiles.def."""
    text = "// Devices that the compile farm describes, as profiles of OCLTENSOR_CAPS.\n"
    text += "// Written by tests/compile_farm/devices.py profiles.\n"
    text += "// clang-format off\n"
    for device in devices().values():
        lines = textwrap.wrap(caps(device).replace(",", ", "), 86)
        pieces = [f'"{line.replace(", ", ",")}"' for line in lines]
        alike = "|".join(device.answers["alike"])
        text += f'OCLTENSOR_CAPS_PROFILE("{device.name}",\n'
        text += "".join(f"    {piece}\n" for piece in pieces[:-1])
        text += f'    {pieces[-1]},\n    "{device.title}",\n    "{alike}")\n'
    return text


def load(path: pathlib.Path) -> Device:
    text = tomllib.loads(path.read_text())
    compiler = text["compiler"]
    return Device(
        name=path.stem,
        title=text["title"],
        compiler=compiler["name"],
        target=compiler["target"],
        least_version=compiler.get("least_version", 0),
        answers=text["device"],
        unit=Unit(**text["unit"]),
        facts=text.get("fact", []),
    )


def devices() -> dict[str, Device]:
    return {path.stem: load(path) for path in sorted(FOLDER.glob("*.toml"))}


def main() -> None:
    if sys.argv[1:2] == ["caps"]:
        print(caps(devices()[sys.argv[2]]))
        return
    if sys.argv[1:2] == ["profiles"]:
        PROFILES.write_text(profiles())
        return
    for device in devices().values():
        print(f"{device.name:8} {device.compiler:6} {device.target:8} {device.title}")


if __name__ == "__main__":
    main()
