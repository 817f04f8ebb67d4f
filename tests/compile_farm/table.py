"""What the compilers made of kernels, as a table: by family and kernel, the worst first.

Occupancy is arithmetic from the device's description: how many waves of a compute unit run at once,
of those that it could hold, with the kernel's registers, local memory and work-groups.
"""

from __future__ import annotations

import dataclasses
import math

import devices

COLUMNS = (
    ("device", 8),
    ("kernel", 44),
    ("programs", 8),
    ("items", 5),
    ("registers", 9),
    ("spills", 6),
    ("private", 7),
    ("local", 6),
    ("width", 5),
    ("waves", 7),
    ("code", 6),
    ("unit", 9),
)


@dataclasses.dataclass
class Row:
    """One kernel of one program on one device."""

    device: str
    source: str
    kernel: str
    form: str
    items: int  # of its largest work-group
    registers: int
    spills: int
    private: int
    local: int  # of a work-group, static and given
    width: int
    waves: int  # that run at once in a compute unit; 0: not known
    most_waves: int
    code: int
    unit: int = 0  # instructions of a matrix unit in the inner loop, of `loop`
    loop: int = 0
    programs: int = 1

    @property
    def family(self) -> str:
        return self.source.partition("/")[0]

    @property
    def occupancy(self) -> float:
        return self.waves / self.most_waves if self.most_waves else 1.0

    def badness(self) -> tuple:
        kept = self.private or self.spills
        return (-kept, self.occupancy, self.source, self.kernel)


def occupancy(unit: devices.Unit, kernel: dict, items: int, local: int) -> tuple[int, int]:
    """Waves that run at once in a compute unit, and the most that it holds."""
    most = unit.waves * unit.simds
    if not most or not items:
        return 0, most
    waves = unit.waves
    if unit.registers and kernel.get("registers"):
        needed = -(-kernel["registers"] // unit.granule) * unit.granule
        waves = min(waves, unit.registers // needed)
    of_group = math.ceil(items / (kernel.get("width") or unit.wave))
    groups = waves * unit.simds // of_group
    if local:
        groups = min(groups, unit.local_memory // local)
    return groups * of_group, most


def rows_of(device: devices.Device, program: object, result: dict) -> list[Row]:
    """Of the kernels that are launched; of all, where the launches are not known."""
    rows = []
    for name, k in sorted(result["kernels"].items()):
        if program.launches and name not in program.launches:
            continue
        items, given = program.launches.get(name, (0, 0))
        local = k["local"] + given
        waves, most = occupancy(device.unit, k, items, local)
        rows.append(
            Row(
                device.name,
                program.source,
                name,
                program.form,
                items,
                k.get("registers", 0),
                k["spills"],
                k["private"],
                local,
                k.get("width", 0),
                waves,
                most,
                k.get("code", 0),
                k.get("unit", 0),
                k.get("loop", 0),
            )
        )
    return rows


def merged(rows: list[Row]) -> list[Row]:
    """One row a device and kernel: the form that is worst, and how many there are."""
    worst: dict[tuple, Row] = {}
    for row in rows:
        key = (row.device, row.source, row.kernel)
        before = worst.get(key)
        if before is None:
            worst[key] = dataclasses.replace(row)
            continue
        count = before.programs + 1
        if row.badness() < before.badness():
            before = worst[key] = dataclasses.replace(row)
        before.programs = count
    return sorted(worst.values(), key=Row.badness)


def line(row: Row) -> str:
    cells = {
        "device": row.device,
        "kernel": f"{row.source.removesuffix('.cl')}:{row.kernel}",
        "programs": row.programs,
        "items": row.items,
        "registers": row.registers,
        "spills": row.spills,
        "private": row.private,
        "local": row.local,
        "width": row.width,
        "waves": f"{row.waves}/{row.most_waves}" if row.most_waves else "",
        "code": row.code,
        "unit": f"{row.unit} of {row.loop}" if row.unit else "",
    }
    return " ".join(
        f"{cells[name]:<{width}}" if name in ("device", "kernel") else f"{cells[name]:>{width}}"
        for name, width in COLUMNS
    )


def text(rows: list[Row], most: int) -> str:
    """The worst kernels, and of each family and device how many spill."""
    kernels = merged(rows)
    head = " ".join(
        f"{name:<{width}}" if name in ("device", "kernel") else f"{name:>{width}}"
        for name, width in COLUMNS
    )
    lines = [head, *(line(row) for row in kernels[:most])]
    if len(kernels) > most:
        lines.append(f"... and {len(kernels) - most} kernels more (--worst N shows more)")
    return "\n".join(lines)


def families(rows: list[Row]) -> str:
    """A line a family and device: kernels, those that keep numbers in memory, the least waves."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in merged(rows):
        groups.setdefault((row.family, row.device), []).append(row)
    lines = [f"{'family':14} {'device':8} kernels in-memory   most  least waves"]
    for (family, device), found in sorted(groups.items()):
        bad = [r for r in found if r.spills or r.private]
        most = max((r.private for r in bad), default=0)
        least = min(r.occupancy for r in found)
        lines.append(f"{family:14} {device:8} {len(found):7} {len(bad):9} {most:6} {least:11.0%}")
    return "\n".join(lines)


def as_json(rows: list[Row]) -> list[dict]:
    return [
        {"family": row.family, **dataclasses.asdict(row)} for row in sorted(rows, key=Row.badness)
    ]
