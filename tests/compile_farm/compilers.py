"""Compiles one program for one device, and reads registers, spills and memory of its kernels.

A compiler that refuses a program, ends by a signal or does not end is a result like others:
{"status": "ok" | "error" | "crash" | "timeout", "message", "seconds", "kernels"}. A kernel has
"registers" (of a work-item, 32 bits), "spills" (AMD: registers; others: bytes), "private" (bytes
of a work-item in memory, spills among them), "local" (bytes of a work-group), "width" (items of a
wave) and "code" (bytes); those of matrix units have "unit" and "loop", too: their instructions in
the inner loop, and all that are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable

import devices
import elf
import fetch
import inner_loop

SECONDS = 60  # of processor time, whatever else runs: a compilation that takes longer has failed
LONGEST = 10 * SECONDS  # by the clock
NO_END = 124
OF_UNITS = '#line 1 "matrix_units/'  # programs whose inner loops are looked at
NOISE = re.compile(r"local memory global used by non-kernel|linking module|argument unused")
CRASHES = re.compile(r"PLEASE submit a bug report|Abort was called|LLVM ERROR|Segmentation fault")


class Tools:
    """The compilers that are there: unpacked ones first, then the system's."""

    def __init__(self, folder: pathlib.Path | None = None) -> None:
        folder = folder or fetch.TOOLS
        self.folder, self.root = folder, folder / "root"
        libraries = [*self.root.glob("usr/lib/*-linux-gnu"), *self.root.glob("usr/lib/llvm-*/lib")]
        path = ":".join(str(p) for p in libraries)
        self.env = {**os.environ, "LD_LIBRARY_PATH": path, "LC_ALL": "C"}
        self.ocloc = self.program("ocloc")
        self.ptxas = str(folder / "ptxas") if (folder / "ptxas").is_file() else None
        self.spirv_val = self.program("spirv-val")
        # The lowest first: the committed table is its.
        found = ((v, self.program(f"clang-{v}")) for v in fetch.CLANGS)
        self.clangs = {v: path for v, path in found if path}
        self.device_libs = next((p.parent for p in self.root.rglob("ockl.bc")), None)
        self.libclc = next(iter(sorted(self.root.rglob("nvptx64--nvidiacl.bc"))), None)
        record = folder / "fetched.json"
        self.packages = json.loads(record.read_text())["packages"] if record.exists() else {}
        if self.clangs and self.device_libs:
            newest = self.clangs[max(self.clangs)]
            fetch.add_isa_files([newest], self.device_libs, self.env)

    def program(self, name: str) -> str | None:
        unpacked = [p for p in self.root.glob(f"usr/bin/{name}*") if p.name == name]
        return str(unpacked[0]) if unpacked else shutil.which(name)

    def clang(self, least: int = 0) -> tuple[int, str] | None:
        return next(((v, p) for v, p in self.clangs.items() if v >= least), None)

    def lacking(self, device: devices.Device) -> str:
        """Why this device's programs cannot be compiled here; empty where they can."""
        needs = {
            "clang": {"rocm-device-libs": self.device_libs},
            "ocloc": {"ocloc": self.ocloc},
            "ptxas": {"libclc": self.libclc, "ptxas": self.ptxas},
            "spirv": {"llvm-spirv": self.llvm_spirv(), "spirv-val": self.spirv_val},
        }[device.compiler]
        missing = [name for name, there in needs.items() if not there]
        if device.compiler != "ocloc" and not self.clang(device.least_version):
            version = f" {device.least_version} or later" if device.least_version else ""
            missing.insert(0, f"clang{version}")
        return f"no {', no '.join(missing)}" if missing else ""

    def llvm_spirv(self) -> str | None:
        clang = self.clang()
        return self.program(f"llvm-spirv-{clang[0]}") if clang else None

    def version(self, device: devices.Device) -> str:
        """What decides the code besides program and target, as text."""
        names = {"clang": "rocm-device-libs", "ptxas": "libclc", "spirv": "llvm-spirv"}
        if device.compiler == "ocloc":
            driver = self.packages.get("intel-opencl-icd", "installed").split("-")[0]
            return f"ocloc {driver}"
        number, path = self.clang(device.least_version) or (0, "")
        exact = fetch.output([path, "--version"], env=self.env) if path else ""
        found = re.search(r"version (\d+\.\d+\.\d+)", exact)
        also = [v for p, v in sorted(self.packages.items()) if p.startswith(names[device.compiler])]
        extra = f" {fetch.PTXAS.split('==')[1]}" if device.compiler == "ptxas" else ""
        library = f", {names[device.compiler]} {also[0].split('-')[0]}" if also else ""
        return f"clang {found[1] if found else number}{library}{extra}"


def run(command: list[str], env: dict) -> tuple[int, str]:
    limited = ["sh", "-c", 'ulimit -c 0; ulimit -t "$0"; exec "$@"', str(SECONDS), *command]
    try:
        done = subprocess.run(
            limited, capture_output=True, text=True, timeout=LONGEST, env=env, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return NO_END, f"error: no end after {LONGEST} s"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return NO_END, f"error: no end after {SECONDS} s of processor time"
    return done.returncode, done.stdout + done.stderr


def failure(code: int, text: str) -> dict:
    """What a compiler's end without a result is: an error, a crash, or no end."""
    lines = [line.strip() for line in text.splitlines() if not NOISE.search(line)]
    told = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["it said nothing"]
    status = "error"
    if code == NO_END:
        status = "timeout"
    elif code < 0 or code in (134, 139) or CRASHES.search(text):
        status, told = "crash", [f"exit status {code}", *told[:1]]
    return {"status": status, "message": "; ".join(told[:2])[:300], "kernels": {}}


def by_clang(tools: Tools, device: devices.Device, source: str, options: list[str]) -> dict:
    """AMD: Debian's clang with ROCm's device libraries."""
    version, clang = tools.clang(device.least_version)
    obj = source.replace(".cl", ".o")
    command = [clang, "-x", "cl", "-D__OPENCL_VERSION__=120", *options, "-O3"]
    command += ["-target", "amdgcn-amd-amdhsa", f"-mcpu={device.target}"]
    command += ["-mcode-object-version=5"] if version >= fetch.NEW_CLANG else []
    command += [f"--rocm-device-lib-path={tools.device_libs}", "-c", source, "-o", obj]
    code, text = run(command, tools.env)
    if code != 0:
        return failure(code, text)
    data = pathlib.Path(obj).read_bytes()
    size = len(elf.sections(data).get(".text", b""))
    kernels = {}
    for k in elf.amd_kernels(data):
        kernels[k[".name"]] = {
            "registers": k[".vgpr_count"],
            "spills": k.get(".vgpr_spill_count", 0),
            "private": k[".private_segment_fixed_size"],
            "local": k[".group_segment_fixed_size"],
            "width": k[".wavefront_size"],
            "code": size,
        }
    if OF_UNITS in pathlib.Path(source).read_text():
        command[command.index("-c")] = "-S"
        code, text = run(command, tools.env)
        if code != 0:
            return failure(code, text)
        loops = inner_loop.of_amd(pathlib.Path(obj).read_text())
        for kernel in kernels.values():
            kernel["unit"], kernel["loop"] = loops
    return {"status": "ok", "message": "", "kernels": kernels}


def intel_kernels(info: str, code: dict[str, bytes]) -> dict:
    """From a zebin's .ze_info, which is YAML of one kind only."""
    names = {"grf_count": "registers", "simd_size": "width", "slm_size": "local"}
    kernels: dict[str, dict] = {}
    # Entries of the map `kernels:`, of which each begins with its name.
    entries = re.search(r"(?ms)^kernels:\n(.*?)(?=^\S|\Z)", info)
    for entry in re.split(r"(?m)^  - ", entries[1] if entries else "")[1:]:
        name = re.match(r"name:\s+(\S+)", entry)[1]
        if name == "Intel_Symbol_Table_Void_Program":
            continue
        said = dict(re.findall(r"(?m)^      (grf_count|simd_size|slm_size):\s+(\d+)", entry))
        kernel = {
            "spills": 0,
            "private": 0,
            "local": 0,
            "code": len(code.get(f".text.{name}", b"")),
        }
        kernel |= {names[k]: int(v) for k, v in said.items()}
        memory = re.search(r"(?ms)^    per_thread_memory_buffers:\n(.*?)(?=^    \S|\Z)", entry)
        for buffer in re.split(r"(?m)^      - ", memory[1] if memory else "")[1:]:
            size = int(re.search(r"size:\s+(\d+)", buffer)[1])
            # Of a thread, which runs `width` items, unless it says otherwise.
            if "is_simt_thread:  true" not in buffer:
                size = -(-size // max(kernel.get("width", 1), 1))
            kernel["private"] += size
            kernel["spills"] += size if "spill_fill_space" in buffer else 0
        kernels[name] = kernel
    return kernels


def by_ocloc(tools: Tools, device: devices.Device, source: str, options: list[str]) -> dict:
    folder = pathlib.Path(source).parent / "out"
    command = [tools.ocloc, "compile", "-file", source, "-device", device.target]
    command += ["-options", " ".join(options), "-internal_options", "-cl-intel-allow-zebin"]
    command += ["-out_dir", str(folder), "-output", "out", "-output_no_suffix"]
    code, text = run(command, tools.env)
    found = [p for p in folder.glob("out*") if p.suffix not in (".spv", ".gen")]
    if code != 0 or not found:
        return failure(code, text)
    data = elf.sections(found[0].read_bytes())
    if ".ze_info" not in data:
        return failure(1, "error: its output has no section .ze_info")
    kernels = intel_kernels(data[".ze_info"].decode(errors="replace"), data)
    if OF_UNITS in pathlib.Path(source).read_text():
        for name, kernel in kernels.items():
            kernel["unit"], kernel["loop"] = inner_loop.of_intel(data.get(f".text.{name}", b""))
    return {"status": "ok", "message": "", "kernels": kernels}


def by_ptxas(tools: Tools, device: devices.Device, source: str, options: list[str]) -> dict:
    """NVIDIA: clang and libclc to PTX, then NVIDIA's assembler."""
    _, clang = tools.clang()
    ptx = source.replace(".cl", ".ptx")
    command = [clang, "-x", "cl", "-D__OPENCL_VERSION__=120", *options, "-O3", "-S"]
    command += ["-target", "nvptx64-nvidia-cuda", f"-march={device.target}"]
    command += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(tools.libclc)]
    code, text = run([*command, source, "-o", ptx], tools.env)
    if code != 0:
        return failure(code, text)
    assemble = [tools.ptxas, "-v", f"-arch={device.target}", ptx, "-o", f"{ptx}.cubin"]
    code, text = run(assemble, tools.env)
    if code != 0:
        return failure(code, text)
    kernels: dict[str, dict] = {}
    kernel: dict = {}
    for line in text.splitlines():
        if m := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = kernels[m[1]] = {"local": 0, "width": 32, "code": 0}
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line):
            kernel |= {"private": int(m[1]), "spills": int(m[2])}
        elif m := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            kernel |= {"registers": int(m[1]), "local": int(shared[1]) if shared else 0}
    return {"status": "ok", "message": "", "kernels": kernels}


def by_spirv(tools: Tools, device: devices.Device, source: str, options: list[str]) -> dict:
    """Whether SPIR-V 1.0 of the program is valid for OpenCL 1.2; no registers are known."""
    _, clang = tools.clang()
    code_of = source.replace(".cl", "")
    extensions = [] if "cl_khr_fp64" in device.answers["extensions"] else ["-cl-ext=-cl_khr_fp64"]
    command = [clang, "-x", "cl", "-D__OPENCL_VERSION__=120", *options, "-target", "spir64"]
    command += [part for e in extensions for part in ("-Xclang", e)]
    command += ["-O1", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", source]
    steps = [
        [*command, "-o", f"{code_of}.bc"],
        [tools.llvm_spirv(), "--spirv-max-version=1.0", f"{code_of}.bc", "-o", f"{code_of}.spv"],
        [tools.spirv_val, "--target-env", "opencl1.2", f"{code_of}.spv"],
    ]
    for step in steps:
        code, text = run(step, tools.env)
        if code != 0:
            return failure(code, text)
    return {"status": "ok", "message": "", "kernels": {}}


COMPILERS: dict[str, Callable[[Tools, devices.Device, str, list[str]], dict]] = {
    "clang": by_clang,
    "ocloc": by_ocloc,
    "ptxas": by_ptxas,
    "spirv": by_spirv,
}


def compile_program(tools: Tools, device: devices.Device, source: str, options: str) -> dict:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="compile-farm") as folder:
        path = f"{folder}/program.cl"
        pathlib.Path(path).write_text(source)
        result = COMPILERS[device.compiler](tools, device, path, options.split())
    return {**result, "seconds": round(time.monotonic() - begin, 2)}


def key_of(version: str, device: devices.Device, source: str, options: str) -> str:
    """Equal where the result is: comments and the lines' places do not matter."""
    code = re.sub(r"/\*.*?\*/", " ", source, flags=re.S)
    code = re.sub(r"(?m)//(?:[^\n\\]|\\.)*$|^\s*#\s*line\b.*$", "", code)
    code = "\n".join(line for line in map(str.strip, code.splitlines()) if line)
    said = [version, device.compiler, device.target, options, code]
    if device.compiler == "spirv":
        said.append(device.answers["extensions"])
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]
