"""Embeds kernels/**/*.{cl,h} as C++ constants: kernels/elementwise/elementwise_cpu.cl becomes
kernel_sources::elementwise_elementwise_cpu.

usage: embed_kernels.py KERNEL_DIR OUT_HEADER OUT_SOURCE STAMP
Kernels of one item become functions where OUTLINED is 1 (outline_kernels.py).
kernel_sources::digest names the paths and texts of all of them.
A missing file, two paths that give the same identifier, or two headers of one name fail the build.
"""

import hashlib
import pathlib
import re
import sys

from kernel_files import write
from outline_kernels import outlined


def main() -> None:
    root, header, source, stamp = map(pathlib.Path, sys.argv[1:5])
    files = sorted(p for p in root.rglob("*") if p.suffix in (".cl", ".h"))
    names: dict[str, pathlib.Path] = {}
    headers: dict[str, pathlib.Path] = {}
    for path in files:
        relative = (
            path.relative_to(root).with_suffix("")
            if path.suffix == ".cl"
            else path.relative_to(root)
        )
        name = re.sub(r"\W", "_", str(relative))
        if name in names:
            sys.exit(f"embed_kernels: {path} and {names[name]} both become '{name}'")
        names[name] = path
        if path.suffix == ".h":  # kernels include headers by their name alone
            if path.name in headers:
                sys.exit(f"embed_kernels: {path} and {headers[path.name]} have the same name")
            headers[path.name] = path
    head = [
        "// Generated from kernels/ by embed_kernels.py.",
        "#pragma once",
        '#include "runtime/program/source.h"',
        "#include <vector>",
        "namespace ocltensor::opencl::kernel_sources {",
    ]
    body = ['#include "kernel_sources.h"', "namespace ocltensor::opencl::kernel_sources {"]
    digest = hashlib.sha256()
    for name, path in names.items():
        head.append(f"extern const Source {name};")
        text = outlined(path, headers)
        digest.update(f"{path.relative_to(root)}\0{text}\0".encode())
        pieces = (
            "\n".join(f'R"~~({text[i : i + 12000]})~~"' for i in range(0, len(text), 12000)) or '""'
        )
        body.append(f'const Source {name}{{"{path.relative_to(root)}", {pieces}}};')
    head += ["const std::vector<const Source*>& all();", "extern const char* const digest;", "}"]
    listed = ", ".join("&" + n for n in names)
    body += [
        "const std::vector<const Source*>& all() {",
        f"  static const auto& list = *new std::vector<const Source*>{{{listed}}};",
        "  return list;",
        "}",
        f'const char* const digest = "{digest.hexdigest()[:32]}";',
        "}",
    ]
    write(header, head)
    write(source, body)
    stamp.write_text("")


main()
