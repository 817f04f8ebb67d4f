"""Where kernels with barriers return from within a loop, which PoCL 5 compiles to wrong results.

Its compiler divides a kernel at its barriers; singular values came out wrong from one that returned
from the loop around them (PoCL 5.0, LLVM 16), and right with ``break``.
"""

from __future__ import annotations

import re

import kernel_functions

BARRIER = re.compile(r"\b(barrier|SYNC)\b")
LOOP = re.compile(r"\b(for|while|do)\b")
MARKS = re.compile(r"\b(?:for|while|do|return)\b|[(){};]")


def returns_from_loops(text: str) -> list[int]:
    """The lines of those returns, of functions that have a barrier in their own text."""
    code = kernel_functions.code_of(text)
    found = []
    for function in kernel_functions.functions(text):
        first = function.line - 1
        body = code[first : first + max(function.lines, 1)]
        if any(BARRIER.search(line) for line in body):
            found += [first + 1 + line for line in _in_loops(body)]
    return found


def _in_loops(body: list[str]) -> list[int]:
    """Lines, from 0, of the returns behind a loop's head: in its braces or its only statement."""
    found = []
    open_braces: list[bool] = []  # whether each is a loop's
    in_head, pending = 0, False  # parentheses that are open; a loop whose body is still to come
    for number, line in enumerate(body):
        if line.lstrip().startswith("#"):
            continue
        for mark in MARKS.findall(line):
            if mark == "return":
                if pending or any(open_braces):
                    found.append(number)
            elif mark == "{":
                open_braces.append(pending)
                pending = False
            elif mark == "}":
                if open_braces:
                    open_braces.pop()
            elif mark in "()":
                in_head = max(0, in_head + (1 if mark == "(" else -1))  # the list that ends here
            elif mark == ";":
                pending = pending and in_head > 0
            else:
                pending = True
    return found
