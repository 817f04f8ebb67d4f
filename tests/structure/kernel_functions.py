"""How long functions of a kernel's text are: lines from the opening brace to the closing one."""

from __future__ import annotations

import dataclasses
import re


class Unbalanced(ValueError):
    """Braces of a text do not match: no function of it could be counted."""


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    line: int  # of its opening brace
    lines: int


def code_of(text: str) -> list[str]:
    """The lines without what comments, strings and characters hold."""

    def blank(found: re.Match[str]) -> str:
        return "".join("\n" if c == "\n" else " " for c in found[0])

    hidden = r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    return re.sub(hidden, blank, text, flags=re.S).splitlines()


def name_of(head: str) -> str:
    """The function whose body begins behind `head`; empty where something else does."""
    while (head := head.rstrip()).endswith(")"):
        depth, at = 0, len(head)
        while at and (depth or at == len(head)):
            at -= 1
            depth += {")": 1, "(": -1}.get(head[at], 0)
        name = re.search(r"(\w+)\s*$", head[:at])
        if name is None:  # the inner parentheses of an attribute
            return ""
        if name[1] != "__attribute__":
            return name[1]
        head = head[: name.start()]
    return ""


def functions(text: str) -> list[Function]:
    """All functions, those of every branch of a condition; what a macro holds is not seen.

    A branch may open what another branch opens, too: the branches of a condition end alike.
    """
    found: list[Function] = []
    depth, head, name, start = 0, "", "", 0
    at_condition: list[int] = []
    directive = False
    for number, line in enumerate(code_of(text), 1):
        if directive or line.lstrip().startswith("#"):
            if not directive and (word := re.match(r"\s*#\s*(if|el|endif)", line)):
                if word[1] == "if":
                    at_condition.append(depth)
                elif not at_condition:
                    raise Unbalanced(f"line {number}: no #if")
                elif word[1] == "el":
                    depth = at_condition[-1]
                else:
                    at_condition.pop()
            directive = line.endswith("\\")
            continue
        for part in re.split(r"([{};])", line):
            if part == "{":
                if depth == 0:
                    name, start = name_of(head), number
                depth += 1
            elif part == "}":
                depth -= 1
                if depth < 0:
                    raise Unbalanced(f"line {number}: a closing brace without an opening one")
                if depth == 0 and name:
                    found.append(Function(name, start, number - start + 1))
            if depth == 0:
                head = "" if part in ("}", ";") else head + part
        if depth == 0:
            head += "\n"
    if depth:
        raise Unbalanced(f"line {start}: the brace of {name or 'a declaration'} is not closed")
    return found
