"""Embeds files of measurements (plugin/opencl/tuned/*.tsv, written by ocltensor-tune --export).

usage: embed_tuned.py FOLDER OUT_SOURCE
A file without the title of such files fails the build.
"""

import pathlib
import sys

TITLE = "ocltensor tuned 1\n"
LONGEST = 12000  # characters of a literal, which compilers limit


def literal(text: str) -> str:
    parts = [text[i : i + LONGEST] for i in range(0, len(text), LONGEST)]
    return "\n".join(f'R"~~({part})~~"' for part in parts)


def main() -> None:
    folder, source = map(pathlib.Path, sys.argv[1:3])
    files = sorted(folder.glob("*.tsv"))
    rows = []
    for path in files:
        text = path.read_text()
        if not text.startswith(TITLE):
            sys.exit(f"embed_tuned: {path} does not begin with '{TITLE.strip()}'")
        rows.append(f'    {{"tuned/{path.name}", {literal(text)}}},')
    body = "\n".join(rows)
    source.write_text(
        "// Generated from plugin/opencl/tuned by embed_tuned.py.\n"
        '#include "call/shipped_measurements.h"\n'
        "#include <array>\n"
        "namespace ocltensor::opencl::shipped_measurements {\n"
        "std::span<const Embedded> embedded() {\n"
        f"  static constexpr std::array<Embedded, {len(files)}> kFiles{{{{\n{body}\n  }}}};\n"
        "  return kFiles;\n"
        "}\n"
        "}  // namespace ocltensor::opencl::shipped_measurements\n"
    )


main()
