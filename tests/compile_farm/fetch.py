"""Gets the compilers of GPUs, unpacked and not installed: an installed driver would be a platform.

usage: fetch.py [--with PART[,PART...]] [--into FOLDER]

Parts: intel (ocloc), amd (clang and rocm-device-libs), amd-new (a clang that knows RDNA 3 and CDNA
3), nvidia (libclc and ptxas), spirv (llvm-spirv and spirv-val). Default: intel,amd. What apt says
that a package needs here, and what is not installed, comes along; versions are the distribution's.
Exit status 1: something could not be had.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("COMPILE_FARM_TOOLS", ROOT / "build/compile-farm/tools"))
PARTS = ("intel", "amd", "amd-new", "nvidia", "spirv")
# The clang whose spills the committed table has comes first; others where a distribution lacks it.
CLANGS = (15, 16, 17, 18, 19, 20)
NEW_CLANG = 17  # from which RDNA 3's registers are known, and code objects are of version 5
# GPUs of AMD's later than the device libraries of ROCm 5: all that lacks is a file with the number.
ISA_NUMBERS = {"1100": 11000, "1200": 12000, "942": 9402}
ISA = """target datalayout = "{layout}"
target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {n}
!opencl.ocl.version = !{{!0}}
!0 = !{{i32 2, i32 0}}
"""
LAYOUT = (
    "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32"
    "-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
)
PTXAS = "nvidia-cuda-nvcc-cu12==12.9.86"  # the last whose ptxas knows sm_50


def output(command: list[str], env: dict[str, str] | None = None) -> str:
    env = {**(env or os.environ), "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return done.stdout if done.returncode == 0 else ""


@functools.cache
def candidates(packages: tuple[str, ...]) -> dict[str, str]:
    """The versions that apt would install, or has installed, of those that it knows."""
    said = output(["apt-cache", "policy", *packages])
    rows = re.findall(r"(?m)^(\S+):\n  Installed: .*\n  Candidate: (\S+)", said)
    return {name: version for name, version in rows if version != "(none)"}


def first_of(*packages: str) -> list[str]:
    there = candidates(packages)
    return [p for p in packages if p in there][:1]


def wanted(parts: list[str]) -> list[str]:
    """Debian packages by what they are for; what this distribution does not have is left out."""
    there = candidates(tuple(f"clang-{v}" for v in CLANGS))
    clang = next((v for v in CLANGS if f"clang-{v}" in there), 0)
    packages: list[str] = []
    if "intel" in parts:
        # Later distributions have ocloc in a package of its own.
        packages += [*first_of("intel-opencl-icd"), *first_of("intel-ocloc", "ocloc")]
    if {"amd", "nvidia", "spirv"} & set(parts) and clang:
        packages.append(f"clang-{clang}")
    if "amd" in parts:
        packages += first_of("rocm-device-libs", *(f"rocm-device-libs-{v}" for v in CLANGS))
    if "amd-new" in parts:
        packages += first_of(*(f"clang-{v}" for v in reversed(CLANGS) if v >= NEW_CLANG))
    if "nvidia" in parts and clang:
        packages += first_of(f"libclc-{clang}", "libclc-15")
    if "spirv" in parts and clang:
        packages += [*first_of(f"llvm-spirv-{clang}"), *first_of("spirv-tools")]
    return packages


def with_needs(packages: list[str]) -> list[str]:
    """Those of the packages, and of what they need, that are not installed."""
    simulated = output(["apt-get", "-s", "install", "--no-install-recommends", *packages])
    return re.findall(r"^Inst (\S+)", simulated, re.M)


def unpack(packages: list[str], tools: pathlib.Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="compile-farm") as folder:
        done = subprocess.run(
            ["apt-get", "-qq", "download", *packages],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            print(f"fetch: {done.stderr.strip()[-300:]}", file=sys.stderr)
        files = sorted(pathlib.Path(folder).glob("*.deb"))
        size = sum(f.stat().st_size for f in files)
        for file in files:
            subprocess.run(["dpkg", "-x", str(file), str(tools / "root")], check=True)
        print(f"fetch: {len(files)} packages, {size / 1e6:.0f} MB", flush=True)
        return done.returncode == 0


def ptxas(tools: pathlib.Path) -> bool:
    target = tools / "ptxas"
    if target.is_file():
        return True
    with tempfile.TemporaryDirectory(prefix="compile-farm") as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        command += ["--disable-pip-version-check", "-d", folder, PTXAS]
        if subprocess.run(command, check=False).returncode != 0:
            return False
        wheel = next(pathlib.Path(folder).glob("*.whl"))
        print(f"fetch: {PTXAS}, {wheel.stat().st_size / 1e6:.0f} MB", flush=True)
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read("nvidia/cuda_nvcc/bin/ptxas"))
    target.chmod(0o755)
    return True


def add_isa_files(clang: list[str], libraries: pathlib.Path, env: dict[str, str]) -> None:
    """Files of newer GPUs' numbers, beside those that the device libraries bring."""
    for name, number in ISA_NUMBERS.items():
        target = libraries / f"oclc_isa_version_{name}.bc"
        if target.exists():
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".ll") as file:
            file.write(ISA.format(layout=LAYOUT, n=number))
            file.flush()
            command = [*clang, "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c"]
            command += ["-x", "ir", file.name, "-o", str(target)]
            subprocess.run(command, env=env, capture_output=True, check=False)


def fetch(parts: list[str], tools: pathlib.Path = TOOLS) -> bool:
    """Gets what is missing. Whether it is all there; who wants it says what lacks."""
    record = tools / "fetched.json"
    known = json.loads(record.read_text()) if record.exists() else {"parts": [], "packages": {}}
    missing = [p for p in parts if p not in known["parts"]]
    if not missing:
        return True
    tools.mkdir(parents=True, exist_ok=True)
    if not shutil.which("apt-get"):
        print("fetch: there is no apt-get here", file=sys.stderr)
        return False
    print(f"fetch: the compilers for {', '.join(missing)}", flush=True)
    packages = wanted(missing)
    needed = with_needs(packages)
    good = bool(packages) and (not needed or unpack(needed, tools))
    if "nvidia" in missing:
        good = ptxas(tools) and good
    if good:
        known["packages"] |= candidates(tuple(sorted({*packages, *needed})))
        known["parts"] += missing
        record.write_text(json.dumps(known, indent=1))
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--with", dest="parts", default="intel,amd")
    parser.add_argument("--into", type=pathlib.Path, default=TOOLS)
    a = parser.parse_args()
    parts = a.parts.split(",")
    if unknown := [p for p in parts if p not in PARTS]:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return 0 if fetch(parts, a.into) else 1


if __name__ == "__main__":
    sys.exit(main())
