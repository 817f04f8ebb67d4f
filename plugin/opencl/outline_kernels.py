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


def names_in(path: pathlib.Path, name: str, parameters: str, source: Source) -> str:
    """The names of a kernel's parameters, as arguments of a call."""
    expanded = source.expand(re.sub(r"//[^\n]*", "", parameters))
    if "#" in expanded:
        sys.exit(f"{path}: {name} has parameters under a condition")
    return ", ".join(re.findall(r"(\w+)\s*(?:,|$)", expanded))


def as_function(qualifier: str, name: str, parameters: str, names: str) -> tuple[str, str]:
    """What stands before a kernel's body and after it where OUTLINED is 1."""
    given = STRUCTURE.sub(r"const \1 \2_", parameters)
    copies = [f"const {kind} {of} = {of}_;\n" for kind, of in STRUCTURE.findall(parameters)]
    head = [f"#define {place}(d) {value}(d)\n" for place, value in PLACES.items()]
    head += [f"ITEM_FUNCTION {name}_item({given}, ITEM_PARAMETERS) {{\n", *copies]
    tail = [f"#undef {place}\n" for place in PLACES]
    tail += [f"{qualifier} __kernel void {name}({parameters}) {{\n"]
    tail += [f"  {name}_item({names}, ITEM_ARGUMENTS);\n}}\n"]
    return "".join(head), "".join(tail)


def outlined(path: pathlib.Path, headers: dict[str, pathlib.Path]) -> str:
    """The file's text, in which such kernels are functions where OUTLINED is 1."""
    text = path.read_text()
    if path.suffix != ".cl" or not KERNEL.search(text):
        return text
    source = Source(path, headers)
    check_places(source)
    out, at = "", 0
    while kernel := KERNEL.search(text, at):
        begin = text.index(") {\n", kernel.end())
        end = text.index("\n}\n", begin) + 3
        parameters, body = text[kernel.end() : begin], text[begin + 4 : end]
        if re.search(r"^\s*__local\b", on_cpus(body), re.M):
            sys.exit(f"{path}: {kernel[2]} has a __local array: SCRATCH is what functions can have")
        names = names_in(path, kernel[2], parameters, source)
        head, tail = as_function(kernel[1], kernel[2], parameters, names)
        line = [text.count("\n", 0, place) + 1 for place in (kernel.start(), begin + 4, end)]
        whole = text[kernel.start() : begin + 4]
        out += text[at : kernel.start()]
        out += f"#if OUTLINED\n{head}#else\n#line {line[0]}\n{whole}#endif\n"
        out += f"#line {line[1]}\n{body}#if OUTLINED\n{tail}#endif\n#line {line[2]}\n"
        at = end
    return out + text[at:]
