"""Writes what C++ may launch: one structure of arguments for each kernel, and the names of defines.

usage: generate_launches.py KERNEL_DIR OUT_DIR STAMP

The kernel `softmax_held` of KERNEL_DIR/softmax/softmax_gpu.cl becomes
kernels::softmax::softmax_gpu::softmax_held in OUT_DIR/kernels/softmax.h, a KernelOf (see
runtime/kernels/kernel_of.h) whose structure has a member for each argument, in the kernel's
order:

  __global T *x_base, ulong x_offset     MemoryRange x
  several of these, x0 .. xN             std::array<MemoryRange, N + 1> x
  __global T *x0 .. xN, no offsets       std::array<cl_mem, N + 1> x
  __global FaultRecord *, int            FaultSite faults
  long, ulong, int, uint, float x        Number<int64_t> x, ...
  __local T *x                           LocalBytes x
  const XParams p                        const XParams& p
  what stands between #if and #endif, or
  in a macro that may be empty           Optional of it, given where the define says so

No member has a default: a launch that lacks one, misspells it or swaps two does not compile.
Kernels of one family whose parameters are the same share a structure, so that a launcher can choose
between them. OUT_DIR/kernels/defines.h has a constant for every define that a kernel reads and no
kernel sets, OUT_DIR/kernel_reads.cpp which of them each kernel file reads, and which it needs
(runtime/program/kernel_reads.h).
"""

import pathlib
import re
import sys

from kernel_files import Source, write

NUMBERS = {
    "long": "int64_t",
    "ulong": "uint64_t",
    "int": "int32_t",
    "uint": "uint32_t",
    "float": "float",
}


class Signature:
    """A kernel's parameters as members of a structure, and how they are bound."""

    def __init__(self, where: str, parameters: list[str]) -> None:
        self.members: list[tuple[str, str]] = []
        self.bindings: list[str] = []
        self.structures: list[str] = []
        optional = False
        self._items, self._where = list(parameters), where
        while self._items:
            item = self._items.pop(0)
            if item in ("#if", "#endif"):
                optional = item == "#if"
            else:
                self._add(item, optional)
        names = [member for _, member in self.members]
        if twice := {n for n in names if names.count(n) > 1}:
            sys.exit(f"{where}: two arguments '{twice.pop()}'; rename one of the parameters")

    def _add(self, item: str, optional: bool) -> None:
        pointer = re.fullmatch(r"__global (?:const )?(?:\w+(?:\([\w, ]*\))?) ?\*\s*(\w+)", item)
        following = self._items[0] if self._items else ""
        if pointer and item.split("*")[0].strip() == "__global FaultRecord":
            self._items.pop(0)
            return self._member("FaultSite", "faults", "launch.faults({});", optional)
        if pointer and re.fullmatch(r"ulong \w*offset\d*", following):
            self._items.pop(0)
            name = re.sub(r"_?base(?=\d*$)", "", pointer[1]) or "memory"
            if name.isdigit():
                name = "memory" + name
            return self._member("MemoryRange", name, "launch.memory({});", optional)
        if pointer:
            return self._member("cl_mem", pointer[1], "launch.value({});", optional)
        if local := re.fullmatch(r"__local \w+(?:\([\w, ]*\))? ?\*\s*(\w+)", item):
            return self._member("LocalBytes", local[1], "launch.local({}.bytes);", optional)
        if number := re.fullmatch(rf"(?:const )?({'|'.join(NUMBERS)}) (\w+)", item):
            kind = f"Number<{NUMBERS[number[1]]}>"
            return self._member(kind, number[2].rstrip("_"), "launch.value({}.value);", optional)
        if structure := re.fullmatch(r"const (\w+Params) (\w+)", item):
            self.structures.append(structure[1])
            self.members.append((f"const {structure[1]}&", structure[2]))
            return self.bindings.append(f"launch.value({structure[2]});")
        sys.exit(f"{self._where}: a parameter that no launch can bind: '{item}'")

    def _member(self, kind: str, name: str, binding: str, optional: bool) -> None:
        """Appends a member, or extends the last one to an array if this is its next element."""
        numbered = re.fullmatch(r"(\D\w*?)(\d+)", name)
        if numbered and kind in ("MemoryRange", "cl_mem"):
            stem, number = numbered[1], int(numbered[2])
            array = (f"std::array<{kind}, {number}>", stem)
            if number > 0 and self.members and self.members[-1] == array:
                self.members[-1] = (f"std::array<{kind}, {number + 1}>", stem)
                return
            if number == 0:
                self.members.append((f"std::array<{kind}, 1>", stem))
                loop = f"for (const auto& each : {stem}) {binding.format('each')}"
                return self.bindings.append(loop)
        bound = binding.format(f"(*{name})" if optional else name)
        self.members.append((f"Optional<{kind}>" if optional else kind, name))
        self.bindings.append(f"if ({name}.is_given()) {bound}" if optional else bound)

    def structure(self, name: str) -> list[str]:
        return [
            f"struct {name} {{",
            *(f"  {kind} {member};" for kind, member in self.members),
            "  void bind(Launch& launch) const {",
            *(f"    {binding}" for binding in self.bindings),
            "  }",
            "};",
        ]


def camel(*words: str) -> str:
    return "".join(w.capitalize() for word in words for w in word.split("_"))


def family_header(root: pathlib.Path, folder: pathlib.Path, sources: list[Source]) -> list[str]:
    structures: dict[tuple, str] = {}
    body: list[str] = []
    parameters: set[str] = set()
    family = "::".join(folder.parts)
    for source in sources:
        constants: list[str] = []
        file = source.path.relative_to(root).with_suffix("")
        for name, listed in source.kernels().items():
            signature = Signature(f"{file}.cl: {name}", listed)
            parameters |= set(signature.structures)
            key = tuple(signature.members)
            if key not in structures:
                structures[key] = camel(source.path.stem, name) + "Arguments"
                body += signature.structure(structures[key])
            constants.append(
                f"inline constexpr KernelOf<{structures[key]}> "
                f'{name}{{kernel_sources::{re.sub(r"[^a-zA-Z0-9]", "_", str(file))}, "{name}"}};'
            )
        body += [
            f"namespace {source.path.stem} {{",
            *constants,
            f"}}  // namespace {source.path.stem}",
        ]
    includes = sorted(
        path.name
        for source in sources
        for path in source.texts
        if path.parent.name == "params"
        and any(re.search(rf"\}}\s*{p}\s*;", source.texts[path]) for p in parameters)
    )
    return [
        f"// Launches of kernels/{folder}. Generated by generate_launches.py.",
        "#pragma once",
        "#include <array>",
        *(f'#include "{name}"' for name in dict.fromkeys(includes)),
        '#include "kernel_sources.h"',
        '#include "kernels/defines.h"',
        '#include "runtime/kernels/kernel_of.h"',
        f"namespace ocltensor::opencl::kernels::{family} {{",
        *body,
        f"}}  // namespace ocltensor::opencl::kernels::{family}",
    ]


def main() -> None:
    root, out, stamp = map(pathlib.Path, sys.argv[1:4])
    headers = {p.name: p for p in root.rglob("*.h")}
    families: dict[pathlib.Path, list[Source]] = {}
    for path in sorted(root.rglob("*.cl")):
        families.setdefault(path.parent.relative_to(root), []).append(Source(path, headers))
    reads: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    for folder, sources in families.items():
        write(out / "kernels" / f"{folder}.h", family_header(root, folder, sources))
        for source in sources:
            path = str(source.path.relative_to(root))
            reads[path], needs[path] = source.defines(), source.needs()
    write(
        out / "kernel_reads.cpp",
        [
            "// Which defines each kernel file reads. Generated by generate_launches.py.",
            '#include "runtime/program/kernel_reads.h"',
            "namespace ocltensor::opencl {",
            "std::span<const KernelReads> kernel_reads() {",
            "  static constexpr KernelReads kAll[] = {",
            *(
                f'      {{"{path}", " {" ".join(sorted(names))} ", '
                f'"{" ".join(sorted(needs[path]))}"}},'
                for path, names in reads.items()
            ),
            "  };",
            "  return kAll;",
            "}",
            "}  // namespace ocltensor::opencl",
        ],
    )
    write(
        out / "kernels" / "defines.h",
        [
            "// Names of the defines that kernels read. Generated by generate_launches.py.",
            "#pragma once",
            '#include "runtime/program/defines.h"',
            "namespace ocltensor::opencl::define {",
            *(
                f'inline constexpr DefineName {name}{{"{name}"}};'
                for name in sorted(set().union(*reads.values()))
            ),
            "}  // namespace ocltensor::opencl::define",
        ],
    )
    stamp.write_text("")


main()
