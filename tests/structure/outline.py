"""Kernels of one item as functions (plugin/opencl/outline_kernels.py): without OUTLINED every
kernel's text is what it was, with it each such kernel is a call; and what cannot be one fails.

usage: outline.py KERNEL_DIR
"""

import pathlib
import re
import subprocess
import sys
import tempfile

PLUGIN = pathlib.Path(__file__).resolve().parents[2] / "plugin/opencl"
sys.path.insert(0, str(PLUGIN))

from outline_kernels import KERNEL, outlined  # noqa: E402

FUNCTION = "INLINE long place(void) { return get_global_id(0); }\n"
KERNEL_TEXT = "ONE_ITEM __kernel void f(__global int *x) {\n  x[get_global_id(0)] = 1;\n}\n"
REFUSED = {
    "a function that asks for the place": FUNCTION + KERNEL_TEXT,
    "a local array": KERNEL_TEXT.replace("{\n", "{\n  __local int y[2];\n"),
    "parameters under a condition": KERNEL_TEXT.replace(
        "int *x", "int *x,\n#if N\nint n,\n#endif\nint m"
    ),
}
ALLOWED = {
    "such a function on GPUs": f"#if !CPU_STYLE\n{FUNCTION}#endif\n{KERNEL_TEXT}",
    "such a macro": "#define PLACE get_global_id(0)\n" + KERNEL_TEXT,
}


def plain(text: str) -> str:
    """What is left of a text where OUTLINED is 0, with its lines in their places."""
    lines: list[str] = []
    keep, depth = True, 0
    for line in text.splitlines():
        if line == "#if OUTLINED":
            keep, depth = False, 1
        elif depth and re.match(r"#\s*if", line):
            depth += 1
        elif depth == 1 and line == "#else":
            keep = True
        elif depth and line == "#endif":
            depth -= 1
            keep = depth == 0 or keep
        elif keep and (place := re.fullmatch(r"#line (\d+)", line)):
            assert len(lines) + 1 == int(place[1]), f"line {len(lines) + 1} is called {place[1]}"
        elif keep:
            lines.append(line)
    return "\n".join(lines) + "\n"


def check_tree(root: pathlib.Path) -> None:
    headers = {p.name: p for p in root.rglob("*.h")}
    count = 0
    for path in sorted(root.rglob("*.cl")):
        original, changed = path.read_text(), outlined(path, headers)
        kernels = KERNEL.findall(original)
        count += len(kernels)
        assert plain(changed) == original, f"{path} is another text without OUTLINED"
        for _, name in kernels:
            assert changed.count(f"ITEM_FUNCTION {name}_item(") > 0, f"{path}: {name}"
            assert re.search(rf"^  {name}_item\(.*ITEM_ARGUMENTS\);$", changed, re.M), path
    assert count > 80, f"{count} kernels of one item"


def is_refused(text: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "sample.cl"
        path.write_text(text)
        code = (
            "import pathlib, sys, outline_kernels as o; o.outlined(pathlib.Path(sys.argv[1]), {})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, path], cwd=PLUGIN, capture_output=True, text=True
        )
        assert done.returncode == 0 or "Traceback" not in done.stderr, done.stderr
        return done.returncode != 0


def main() -> None:
    check_tree(pathlib.Path(sys.argv[1]))
    for what, text in REFUSED.items():
        assert is_refused(text), f"not refused: {what}"
    for what, text in ALLOWED.items():
        assert not is_refused(text), f"refused: {what}"


main()
