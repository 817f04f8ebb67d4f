"""Makes a folder to compile against: the C library of an old Debian, for either machine, and the
headers that the project needs, from Debian's packages, unpacked without installing any.

A program that was linked with an old C library runs with every later one, so this library decides
on which systems a wheel runs (its manylinux tag), not the system that compiles it. The compiler is
the system's g++, or Debian's cross compiler, with its own C++ headers.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
GLIBC = "2.31"  # of bullseye, the oldest Debian on its mirrors
# Debian's suite: its packages. Those of the later suite are headers, and libraries that only the
# CMake files of these packages name.
PACKAGES = {
    "bullseye": ("libc6", "libc6-dev", "linux-libc-dev", "libstdc++6", "zlib1g", "zlib1g-dev"),
    "bookworm": (
        *("libfmt-dev", "libfmt9", "libspdlog-dev", "libspdlog1.10", "nlohmann-json3-dev"),
        *(
            "opencl-c-headers",
            "opencl-clhpp-headers",
            "libxxhash-dev",
            "libeigen3-dev",
            "libcli11-dev",
            "libpython3.11-dev",
        ),
    ),
}
# What the functions of a later libstdc++ look for in a later C library: "not single-threaded" is
# always right.
COMPATIBILITY = '__attribute__((visibility("hidden"))) char __libc_single_threaded;\n'
# The compiler's libgcc_s.so.1 was linked with a later C library, and so names functions of it; the
# user's system has its own.
LINKS = "-Wl,--as-needed -Wl,--allow-shlib-undefined -Wl,--exclude-libs,libstdc++.a"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # the machine: Debian's name


def compiler(machine: str) -> str:
    return f"{machine}-linux-gnu-g++"


def download(machine: str, folder: pathlib.Path) -> None:
    """The packages' files, by an apt of its own that knows nothing of the system's packages."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text("".join(f"deb [signed-by={KEYS}] {MIRROR} {s} main\n" for s in PACKAGES))
    architecture = ARCHITECTURES[machine]
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    subprocess.run([*apt, "update"], check=True)
    names = [f"{package}/{suite}" for suite, packages in PACKAGES.items() for package in packages]
    subprocess.run([*apt, "download", *names], check=True, cwd=folder)


def own_headers(machine: str) -> list[pathlib.Path]:
    """The folders of the compiler's own headers, in its order."""
    shown = subprocess.run(
        [compiler(machine), "-E", "-v", "-x", "c++", "/dev/null"],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    # It prints /usr/lib/gcc/MACHINE/12/../../../../include/c++/12.
    folders = [pathlib.Path(line.strip()).resolve() for line in re.findall("^ /.*", shown, re.M)]
    return [f for f in folders if f.is_dir() and {"c++", "gcc", "gcc-cross"} & set(f.parts)]


def write_toolchain(machine: str, root: pathlib.Path) -> None:
    """CMake's file for compiling with `root`. Its headers come last, as a system's do; its start
    files and libraries come before the compiler's own, which a cross compiler has elsewhere."""
    triple = f"{machine}-linux-gnu"
    libraries = [root / f"usr/lib/{triple}", root / f"lib/{triple}"]
    cxx = [*own_headers(machine), root / f"usr/include/{triple}", root / "usr/include"]
    c = [folder for folder in cxx if "c++" not in folder.parts]
    flags = {
        language: " ".join(["-nostdinc", *(f"-idirafter {folder}" for folder in headers)])
        for language, headers in {"C": c, "CXX": cxx}.items()
    }
    links = " ".join([*(f"-B{folder} -L{folder}" for folder in libraries), LINKS])
    lines = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": machine,
        "CMAKE_LIBRARY_ARCHITECTURE": triple,
        "CMAKE_C_COMPILER": compiler(machine).replace("g++", "gcc"),
        "CMAKE_CXX_COMPILER": compiler(machine),
        "CMAKE_SYSROOT": root,
        "CMAKE_C_FLAGS_INIT": flags["C"],
        "CMAKE_CXX_FLAGS_INIT": flags["CXX"],
        "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM": "NEVER",
        "CMAKE_FIND_ROOT_PATH_MODE_PACKAGE": "ONLY",
        "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY": "ONLY",
        "CMAKE_FIND_ROOT_PATH_MODE_INCLUDE": "ONLY",
    } | {f"CMAKE_{kind}_LINKER_FLAGS_INIT": links for kind in ("EXE", "SHARED", "MODULE")}
    text = "".join(f'set({name} "{value}")\n' for name, value in lines.items())
    (root / "toolchain.cmake").write_text(text)


def write_libstdcxx(machine: str, root: pathlib.Path) -> None:
    """A linker script libstdc++.so, as Red Hat's toolsets have one: functions come from the old
    library, and those that it lacks are copied from the compiler's archive."""
    folder = root / f"usr/lib/{machine}-linux-gnu"
    object_file = folder / "compatibility.o"
    cc = compiler(machine).replace("g++", "gcc")
    subprocess.run(
        [cc, "-fPIC", "-x", "c", "-", "-c", "-o", object_file],
        input=COMPATIBILITY,
        text=True,
        check=True,
    )
    archive = subprocess.run(
        [compiler(machine), "-print-file-name=libstdc++.a"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    # "=" and an absolute path are both below the sysroot for the linker; -l is not.
    shutil.copy(archive, folder / "libstdc++.a")
    (folder / "libstdc++.so").write_text(
        "INPUT(-l:libstdc++.so.6 -l:libstdc++.a -l:compatibility.o)\n"
    )


def turn_links_inwards(root: pathlib.Path) -> None:
    """A package's absolute link is meant below the root."""
    for link in root.rglob("*"):
        if link.is_symlink() and link.readlink().is_absolute():
            target = root / str(link.readlink()).lstrip("/")
            link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))


def make(machine: str, folder: pathlib.Path) -> pathlib.Path:
    """The sysroot for "x86_64" or "aarch64" below `folder`, with a toolchain.cmake; made if it is
    not there."""
    root = folder / f"sysroot-{machine}"
    if root.is_dir():
        return root
    scratch = folder / f"sysroot-{machine}.part"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "root").mkdir(parents=True)
    download(machine, scratch)
    for package in sorted(scratch.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, scratch / "root"], check=True)
    turn_links_inwards(scratch / "root")
    (scratch / "root").rename(root)
    write_libstdcxx(machine, root)
    write_toolchain(machine, root)
    shutil.rmtree(scratch)
    return root
