"""Makes functions of kernels whose work-groups are one item, for drivers that set OUTLINED.

PoCL compiles a kernel three times: by itself, and inlined in both of the functions that start its
work-groups. A function that is not inlined is compiled once, and called by the three. Its text is
the kernel's, but that the item's place comes as arguments, as PoCL knows it in kernels alone, and
that it begins with copies of structures: what is in an argument would not be kept in registers.
"""

from __future__ import annotations

import pathlib
import re
import sys

from kernel_files import Source

KERNEL = re.compile(r"^(ONE_ITEM|PER_ITEM|ITEMS|GROUP) __kernel void (\w+)\(", re.M)
STRUCTURE = re.compile(r"\bconst (\w+Params) (\w+)")
PLACES = {
    "get_global_id": "ITEM_ID",
    "get_group_id": "ITEM_ID",
    "get_global_size": "ITEM_COUNT",
    "get_num_groups": "ITEM_COUNT",
}
ASKS_FOR_PLACE = re.compile(rf"\b({'|'.join(PLACES)}|get_local_id|get_local_size)\b")


def names_of(parameters: str) -> str:
    """The names of parameters whose macros are expanded, as arguments of a call."""
    return ", ".join(re.findall(r"(\w+)\s*(?:,|$)", parameters))


def on_cpus(text: str) -> str:
    """The text without preprocessor lines, and without what is compiled on GPUs alone."""
    kept: list[str] = []
    branches: list[bool | None] = []  # of each #if: whether CPU drivers take it, if that is known
    for line in text.splitlines():
        if not (directive := re.match(r"\s*#\s*(\w+)\s*(.*)", line)):
            if False not in branches:
                kept.append(line)
        elif directive[1].startswith("if"):
            branches.append({"CPU_STYLE": True, "!CPU_STYLE": False}.get(directive[2].strip()))
        elif directive[1].startswith("el") and branches[-1] is not None:
            branches[-1] = not branches[-1]
        elif directive[1] == "endif":
            branches.pop()
    return "\n".join(kept)


def check_places(source: Source) -> None:
    """Ends the build if what an outlined kernel may call asks for the item's place itself."""
    for path, text in source.texts.items():
        code = on_cpus(text)
        functions = re.sub(r"^.*__kernel void[\s\S]*?^\}", "", code, flags=re.M)
        if found := ASKS_FOR_PLACE.search(functions):
            sys.exit(f"{path}: {found[0]} in a function: give it the place as an argument")


def outlined(path: pathlib.Path, headers: dict[str, pathlib.Path]) -> str:
    """The file's text, in which such kernels are functions where OUTLINED is 1."""
    text = path.read_text()
    if path.suffix != ".cl" or not KERNEL.search(text):
        return text
    source = Source(path, headers)
    check_places(source)
    out, at = "", 0
    while kernel := KERNEL.search(text, at):
        brace = text.index(") {\n", kernel.end())
        end = text.index("\n}\n", brace) + 3
        parameters, body = text[kernel.end() : brace], text[brace + 4 : end]
        expanded = source.expand(re.sub(r"//[^\n]*", "", parameters))
        if "#" in expanded:
            sys.exit(f"{path}: {kernel[2]} has parameters under a condition")
        if re.search(r"^\s*__local\b", on_cpus(body), re.M):
            sys.exit(f"{path}: {kernel[2]} has a __local array, which a function cannot have: SCRATCH")
        line = [text.count("\n", 0, place) + 1 for place in (kernel.start(), brace + 4, end)]
        out += text[at : kernel.start()]
        out += "#if OUTLINED\n"
        out += "".join(f"#define {name}(d) {value}(d)\n" for name, value in PLACES.items())
        given = STRUCTURE.sub(r"const \1 \2_", parameters)
        out += f"ITEM_FUNCTION {kernel[2]}_item({given}, ITEM_PARAMETERS) {{\n"
        out += "".join(f"const {kind} {name} = {name}_;\n" for kind, name in STRUCTURE.findall(parameters))
        out += f"#else\n#line {line[0]}\n{text[kernel.start() : brace + 4]}#endif\n"
        out += f"#line {line[1]}\n{body}#if OUTLINED\n"
        out += "".join(f"#undef {name}\n" for name in PLACES)
        out += f"{text[kernel.start() : brace]}) {{\n"
        out += f"  {kernel[2]}_item({names_of(expanded)}, ITEM_ARGUMENTS);\n}}\n"
        out += f"#endif\n#line {line[2]}\n"
        at = end
    return out + text[at:]
