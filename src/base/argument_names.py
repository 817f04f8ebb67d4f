"""Writes the names of all inputs of the operators' schemas as rows OCLTENSOR_ARGUMENT(name), in
alphabetical order: implementations read arguments by name, as in `args.tensor(Arg::self)`.

usage: argument_names.py OUTPUT TABLE...   the tables with schemas: operators.def, ...
"""

from __future__ import annotations

import pathlib
import re
import sys

SCHEMA = re.compile(r'"([\w:.]+\(.*\) -> [^"]*)"')


def inputs_of(schema: str) -> list[str]:
    """The names of a schema's inputs: all arguments without those that it writes as results."""
    arguments = schema[schema.index("(") + 1 : schema.rindex(") -> ")]
    names, depth, text = [], 0, ""
    for letter in arguments + ",":
        depth += (letter in "([") - (letter in ")]")
        if letter != "," or depth:
            text += letter
            continue
        kind, _, rest = text.strip().rpartition(" ")
        if kind:
            names.append((kind, rest.partition("=")[0]))
        text = ""
    is_result = re.compile(r"Tensor\(\w!\)")
    after_star = text_after_star(arguments)
    return [n for kind, n in names if not (is_result.match(kind) and n in after_star)]


def text_after_star(arguments: str) -> set[str]:
    """The names of what has to be named in a call."""
    _, star, rest = arguments.partition("*, ")
    return set(re.findall(r"\w+", rest)) if star else set()


def main() -> None:
    output, *tables = map(pathlib.Path, sys.argv[1:])
    text = "\n".join(re.sub(r'"\s*\n\s*"', "", t.read_text()) for t in tables)
    names = sorted(
        {n for s in SCHEMA.findall(text) for n in inputs_of(s)}, key=lambda n: (n.lower(), n)
    )
    output.write_text("".join(f"OCLTENSOR_ARGUMENT({name})\n" for name in names))


if __name__ == "__main__":
    main()
