"""Reads what a compiler says of its kernels from an ELF file: sections, and AMD's notes."""

from __future__ import annotations

import struct

AMD_METADATA = 32  # type of a note named "AMDGPU": a map in MessagePack


def sections(data: bytes) -> dict[str, bytes]:
    """Contents by name, of a little-endian ELF file of 64 bits."""
    if data[:6] != b"\x7fELF\x02\x01":
        return {}
    table, size, count, names_at = (
        struct.unpack_from("<Q", data, 0x28)[0],
        *struct.unpack_from("<HHH", data, 0x3A),
    )
    rows = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    names = data[rows[names_at][4] :]
    found = {}
    for name, kind, _, _, offset, length in rows:
        text = names[name : names.index(b"\0", name)].decode()
        found[text] = b"" if kind == 8 else data[offset : offset + length]  # 8: SHT_NOBITS
    return found


def notes(data: bytes) -> list[tuple[str, int, bytes]]:
    """Name, type and contents of each note of a section."""
    found, at = [], 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        name = data[at + 12 : at + 12 + name_size].rstrip(b"\0").decode(errors="replace")
        begin = at + 12 + (name_size + 3) // 4 * 4
        found.append((name, kind, data[begin : begin + size]))
        at = begin + (size + 3) // 4 * 4
    return found


class Unpacker:
    """MessagePack, as far as compilers write it: maps, lists, texts, integers, truths."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> int:
        return struct.unpack(f">{form}", self.take(struct.calcsize(form)))[0]

    def value(self) -> object:
        kind = self.number("B")
        if kind < 0x80:
            return kind
        if kind < 0x90:
            return self.mapping(kind & 15)
        if kind < 0xA0:
            return [self.value() for _ in range(kind & 15)]
        if kind < 0xC0:
            return self.take(kind & 31).decode()
        if kind >= 0xE0:
            return kind - 256
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind in INTEGERS:
            return self.number(INTEGERS[kind])
        if kind in TEXTS:
            return self.take(self.number(TEXTS[kind])).decode(errors="replace")
        if kind in (0xDC, 0xDD):
            return [self.value() for _ in range(self.number("H" if kind == 0xDC else "I"))]
        if kind in (0xDE, 0xDF):
            return self.mapping(self.number("H" if kind == 0xDE else "I"))
        raise ValueError(f"MessagePack's type {kind:#x} is not known here")

    def mapping(self, count: int) -> dict:
        return {self.value(): self.value() for _ in range(count)}


CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
INTEGERS = dict(zip(range(0xCC, 0xD4), "BHIQbhiq", strict=True))
TEXTS = {0xD9: "B", 0xDA: "H", 0xDB: "I", 0xC4: "B", 0xC5: "H", 0xC6: "I"}


def amd_kernels(data: bytes) -> list[dict]:
    """The entries of amdhsa.kernels: registers, spills, memory of each kernel."""
    for name, contents in sections(data).items():
        if not name.startswith(".note"):
            continue
        for owner, kind, text in notes(contents):
            if owner == "AMDGPU" and kind == AMD_METADATA:
                return Unpacker(text).value().get("amdhsa.kernels", [])
    return []
