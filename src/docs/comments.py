"""Makes documentation of a header's comments, as Doxygen knows it: its filter. usage: comments.py
HEADER

Comments of the tree are plain: what stands before a declaration, or behind it in its line, is about
it; the first one is about the file.
"""

from __future__ import annotations

import re
import sys

SECTION = re.compile(r"/\* -{3,} (.*?)(?: -*)? ?\*/")


def from_cpp(text: str) -> str:
    lines = ["/// @file", "///"] if text.startswith("//") else []
    for line in text.splitlines():
        code, comment = (
            re.match(r"(.*?)(//(?!/).*)?$", line).groups() if '"' not in line else (line, None)
        )
        if comment is None:
            lines.append(line)
        else:
            mark = "///<" if code.strip() else "///"
            lines.append(f"{code}{mark} {comment[2:].strip()}")
    # The file's own comment is not about the declaration that follows it.
    return re.sub(r"\A((?:///.*\n)+)", r"\1\n", "\n".join(lines) + "\n")


def from_c(text: str) -> str:
    text = SECTION.sub("", text)
    text = re.sub(r"^( *)/\*(?!\*)", r"\1/**", text, flags=re.M)  # before a declaration
    text = re.sub(r"(\S[^\n]*?) /\*(?!\*)", r"\1 /**<", text)  # behind it
    return text.replace("/**", "/** @file\n *", 1)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    sys.stdout.write(from_c(text) if "/*" in text[:4] else from_cpp(text))


if __name__ == "__main__":
    main()
