"""Checks of the tree's own rules, which no compiler sees.

usage: structure.py top ROOT       files and folders at the top that nobody planned
       structure.py rooms ROOT     folders that include each other's headers in a circle
       structure.py words ROOT     words that src/GLOSSARY.md has retired
       structure.py kernels ROOT   kernels with lines over 110 columns, tabs, blanks at their ends,
                                   functions of more than 100 lines, or returns from loops with
                                   barriers
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import kernel_exits
import kernel_functions

# What is searched for headers from each tree, after the including file's own folder, as in the
# CMake files: plugin and adapter have rooms of the same names, and never see each other's.
INCLUDE_PATHS = {
    "include": ("include", "src"),
    "src": ("include", "src"),
    "plugin/opencl": ("plugin/opencl", "include", "src"),
    "plugin/torch/csrc": ("plugin/torch/csrc", "plugin/torch/include", "include", "src"),
}
# Folders whose subfolders are rooms of their own.
DIVIDED = (
    "src",
    "src/host",
    "plugin/opencl",
    "plugin/opencl/ops",
    "plugin/opencl/runtime",
    "plugin/torch/csrc",
)
KERNEL_COLUMNS = 110
KERNEL_LINES = 100  # of a function
# Functions that are longer: (file, function) to the lines that it has. Numbers are only lowered.
LONG_FUNCTIONS = {
    ("nvidia_hopper/attention/backward.cl", "attention_hopper_backward"): 208,
    ("nvidia_hopper/attention/forward.cl", "attention_hopper"): 152,
    ("nvidia_hopper/conv/convolution.cl", "conv_hopper"): 148,
    ("nvidia_hopper/matmul/product.cl", "matmul_hopper"): 159,
}
TOP = {
    *("CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE"),
    *("README.md", "bench", "include", "kernels", "plugin", "run", "src", "tests"),
    "third_party_notes",
}
TEXTS = (".c", ".cl", ".cpp", ".def", ".h", ".inc", ".md", ".py", ".sh", ".txt")


def room_of(path: pathlib.PurePath) -> str:
    folder = str(path.parent)
    while (
        str(pathlib.PurePath(folder).parent) not in (*DIVIDED, ".", "include", "plugin")
        and folder not in DIVIDED
    ):
        folder = str(pathlib.PurePath(folder).parent)
    return folder


def includes(root: pathlib.Path) -> dict[str, dict[str, str]]:
    """Room to rooms that it includes, each with a line that does."""
    found: dict[str, dict[str, str]] = {}
    for tree, searched in INCLUDE_PATHS.items():
        for file in sorted((root / tree).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            here = file.relative_to(root)
            for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
                paths = (here.parent / name, *(pathlib.PurePath(p) / name for p in searched))
                target = next((p for p in paths if (root / p).is_file()), None)
                if target is not None and room_of(target) != room_of(here):
                    found.setdefault(room_of(here), {}).setdefault(
                        room_of(target), f'{here}: "{name}"'
                    )
    return found


def circle(edges: dict[str, dict[str, str]], start: str) -> list[str]:
    """The shortest way from a room back to itself; empty where there is none."""
    ways = [[start]]
    seen = set()
    while ways:
        way = ways.pop(0)
        for room in edges.get(way[-1], ()):
            if room == start:
                return [*way, start]
            if room not in seen:
                seen.add(room)
                ways.append([*way, room])
    return []


def check_rooms(root: pathlib.Path) -> list[str]:
    edges = includes(root)
    missing = [t for t in INCLUDE_PATHS if not any(room.startswith(f"{t}/") for room in edges)]
    if len(edges) < 20 or missing:
        return [
            f"only {len(edges)} rooms were found, none in {missing}: "
            "are the folders where this test looks for them?"
        ]
    problems = {}
    for room in sorted(edges):
        if way := circle(edges, room):
            steps = "".join(f"\n    {edges[a][b]}" for a, b in zip(way, way[1:], strict=False))
            problems.setdefault(frozenset(way), " -> ".join(way) + steps)
    return list(problems.values())


def tracked(root: pathlib.Path) -> list[str]:
    return subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def check_top(root: pathlib.Path) -> list[str]:
    found = {name.split("/")[0] for name in tracked(root)}
    missing = [f"{name}: not there" for name in sorted(TOP - found)]
    return missing + [
        f"{name}: not planned at the top"
        for name in sorted(found - TOP)
        if not name.startswith(".")
    ]


def check_words(root: pathlib.Path) -> list[str]:
    glossary = root / "src/GLOSSARY.md"
    # A cell of a table has its "|" escaped.
    cells = [
        row.replace(r"\|", "\0").split("|")[3]
        for row in glossary.read_text().splitlines()
        if row.startswith("| ")
    ]
    retired = [p.replace("\0", "|") for cell in cells for p in re.findall(r"`([^`]+)`", cell)]
    if len(retired) < 5:
        return [f"{glossary} retires only {len(retired)} words"]
    pattern = re.compile("|".join(retired), re.I)
    problems = []
    for name in tracked(root):
        file = root / name
        if (
            file.suffix not in TEXTS
            or file == glossary
            or name.startswith(("bench/results/", "tests/structure/"))
            or not file.is_file()
        ):
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if found := pattern.search(line):
                problems.append(f"{name}:{number}: '{found[0]}'")
    return problems


def long_functions(texts: dict[str, str], allowed: dict[tuple[str, str], int]) -> list[str]:
    """What is wrong with the lengths of functions, of kernels' texts by file."""
    problems = []
    unseen = dict(allowed)
    for file, text in texts.items():
        try:
            found = kernel_functions.functions(text)
        except kernel_functions.Unbalanced as fault:
            problems.append(f"{file}: {fault}")
            continue
        for function in found:
            limit = unseen.pop((file, function.name), None)
            name = f"{file}:{function.line}: {function.name}"
            if function.lines > (limit or KERNEL_LINES):
                most = limit or KERNEL_LINES
                problems.append(f"{name} has {function.lines} lines, more than {most}")
            elif limit and function.lines <= KERNEL_LINES:
                problems.append(f"{name} is no longer long: take it out of LONG_FUNCTIONS")
            elif limit and function.lines < limit:
                problems.append(f"{name}: lower it to {function.lines} in LONG_FUNCTIONS")
    return problems + [
        f"{file}: {name} is gone: take it out of LONG_FUNCTIONS" for file, name in unseen
    ]


def check_kernels(root: pathlib.Path) -> list[str]:
    files = [f for f in sorted((root / "kernels").rglob("*")) if f.suffix in (".cl", ".h")]
    if len(files) < 100:
        return [f"only {len(files)} kernels were found"]
    problems = []
    for file in files:
        text = file.read_text()
        if not text.endswith("\n") or text.endswith("\n\n"):
            problems.append(f"{file.relative_to(root)}: does not end with one line end")
        for number, line in enumerate(text.splitlines(), 1):
            faults = [f"{len(line)} columns, more than {KERNEL_COLUMNS}"] * (
                len(line) > KERNEL_COLUMNS
            )
            faults += ["a tab"] * ("\t" in line) + ["blanks at the end"] * (line != line.rstrip())
            problems += [f"{file.relative_to(root)}:{number}: {fault}" for fault in faults]
    texts = {f.relative_to(root / "kernels").as_posix(): f.read_text() for f in files}
    problems += long_functions(texts, LONG_FUNCTIONS)
    return problems + [
        f"kernels/{name}:{line}: a return from a loop with a barrier: PoCL 5 needs a break"
        for name, text in texts.items()
        for line in kernel_exits.returns_from_loops(text)
    ]


def main() -> None:
    checks = {
        "top": check_top,
        "rooms": check_rooms,
        "words": check_words,
        "kernels": check_kernels,
    }
    check = checks[sys.argv[1]]
    if problems := check(pathlib.Path(sys.argv[2]).resolve()):
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
