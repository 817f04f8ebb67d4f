"""Counts the instructions of a matrix unit in a kernel's inner loop, and all that are there.

That is the straight code, between jumps and places that are jumped to, which has the most of them.
(0, 0) where there are none.
"""

from __future__ import annotations

import re
import struct

AMD_UNIT = re.compile(r"v_(wmma|mfma|dot\d)")
# Intel's instructions have 16 bytes, or 8 where bit 29 says so; the lowest 7 bits are the opcode.
# Jumps have their distances, in bytes, in the last words.
COMPACTED = 29
DPAS = (0x59, 0x5A)
JUMPS = (0x20, 0x22, 0x27, 0x2E, 0x2F)  # jmpi, if, while, goto, join


def best(blocks: list[tuple[int, int]]) -> tuple[int, int]:
    most = max(blocks, key=lambda block: (block[0], -block[1]), default=(0, 0))
    return most if most[0] else (0, 0)


def of_amd(assembly: str) -> tuple[int, int]:
    """From the text of one kernel's assembly."""
    blocks = []
    for block in re.split(r"(?m)^\.LBB\w+:", assembly):
        code = re.findall(r"(?m)^\t([a-z]\w+)", block)
        blocks.append((sum(bool(AMD_UNIT.match(name)) for name in code), len(code)))
    return best(blocks)


def of_intel(code: bytes) -> tuple[int, int]:
    """From one kernel's instructions."""
    at, found, ends = 0, [], set()  # (place, opcode); places where a block ends
    while at + 8 <= len(code):
        (word,) = struct.unpack_from("<Q", code, at)
        size = 8 if word >> COMPACTED & 1 else 16
        opcode = word & 0x7F
        found.append((at, opcode))
        if opcode in JUMPS and at + size <= len(code):
            ends.add(at + size)
            if size == 16:
                ends |= {at + distance for distance in struct.unpack_from("<ii", code, at + 8)}
        at += size
    blocks, units, count = [], 0, 0
    for place, opcode in found:
        if place in ends:
            blocks.append((units, count))
            units = count = 0
        units, count = units + (opcode in DPAS), count + 1
    return best([*blocks, (units, count)])
