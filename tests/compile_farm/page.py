"""The documentation's page of what a GPU gets (plugin/opencl/DEVICES.md): made, read, checked.

Results are merged into the page that there is: devices, and with `--only` sources, that were not
compiled keep what they have.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import textwrap

import budget
import devices
import table

PATH = pathlib.Path(__file__).resolve().parents[2] / "plugin/opencl/DEVICES.md"
KERNELS = PATH.parents[2] / "kernels"
NOTHING = "-"
FAMILIES = {
    "matmul": "Matrix products",
    "conv": "Convolutions",
    "attention": "Attention",
    "softmax": "Softmax",
    "norm": "Norms",
    "reduce": "Reductions",
    "elementwise": "Pointwise operators",
    "linalg": "Linear algebra",
    "matrix_units": "Matrix units",
}
HEAD = (
    "Which kernels the lists of algorithms choose on GPUs that the project knows by their "
    "compilers alone, for a set of models and a slice of the conformance kit. A cell has the "
    "most 32-bit registers of a work-item, and the least share of the waves (warps, threads) "
    "of a compute unit that run at once; bytes, if a work-item keeps some of its numbers in "
    "memory; a dash where the kernel was not asked for. Of matrix units their own "
    "instructions in the inner loop of the form that has the largest share of them. `./run "
    "compile-farm --all --markdown plugin/opencl/DEVICES.md` writes this page, so "
    "nothing here is a time. `ocltensor-info` "
    "says what the device at hand is given, and `ocltensor-info --report` how it fares. Why a "
    "kernel keeps numbers in memory is in the source's `tests/compile_farm/budget.tsv`. Of "
    "Mali and Adreno no compiler runs without one of these GPUs: that their programs are "
    "valid SPIR-V is all that is known."
)


@dataclasses.dataclass
class Known:
    """A device's row of the first table."""

    title: str
    compiler: str
    programs: int
    failed: int


@dataclasses.dataclass
class Page:
    known: dict[str, Known] = dataclasses.field(default_factory=dict)
    # (family, kernel) to device to text.
    cells: dict[tuple[str, str], dict[str, str]] = dataclasses.field(default_factory=dict)

    def columns(self) -> list[str]:
        """Devices of which more is known than that programs are valid."""
        there = {device for row in self.cells.values() for device in row}
        return [device for device in self.known if device in there]

    def text(self) -> str:
        head = "# What your GPU gets\n\n" + textwrap.fill(HEAD, 120, break_on_hyphens=False) + "\n"
        lines = [head, "| | GPU | compiler | programs | do not compile |", "|---" * 5 + "|"]
        lines += [
            f"| {name} | {k.title} | {k.compiler} | {k.programs} | {k.failed} |"
            for name, k in self.known.items()
        ]
        columns = self.columns()
        for family, title in FAMILIES.items():
            head = " | ".join(columns)
            lines += ["", f"## {title}", f"| kernel | {head} |", "|---" * (len(columns) + 1) + "|"]
            for (of, kernel), row in sorted(self.cells.items()):
                if of == family:
                    texts = " | ".join(row.get(device, NOTHING) for device in columns)
                    lines.append(f"| `{kernel}` | {texts} |")
        return "\n".join(lines) + "\n"

    def put(
        self, device: devices.Device, compiler: str, results: list[tuple], whole: bool = True
    ) -> None:
        """Takes in (program, result) of a device: all that there are, or (not `whole`) some
        sources', of which all that there are."""
        failed = sum(r["status"] != "ok" for _, r in results)
        if whole or device.name not in self.known:
            self.known[device.name] = Known(device.title, compiler, len(results), failed)
            self.known = dict(sorted(self.known.items()))
        sources = {program.source for program, _ in results}
        for (family, kernel), row in self.cells.items():
            if whole or source_of(family, kernel) in sources:
                row.pop(device.name, None)
        rows = [row for p, r in results for row in table.rows_of(device, p, r)]
        for key, found in by_kernel(rows).items():
            self.cells.setdefault(key, {})[device.name] = cell(found)
        self.cells = {key: row for key, row in self.cells.items() if row}


def name_of(row: table.Row) -> tuple[str, str]:
    """Family and kernel, as the page has them."""
    name = row.source.removesuffix(".cl").partition("/")[2]
    return row.family, name if row.kernel == name else f"{name}: {row.kernel}"


def source_of(family: str, kernel: str) -> str:
    return f"{family}/{kernel.partition(': ')[0]}.cl"


def by_kernel(rows: list[table.Row]) -> dict[tuple[str, str], list[table.Row]]:
    found: dict[tuple[str, str], list[table.Row]] = {}
    for row in rows:
        if row.family in FAMILIES and row.items:  # others are compiled, but not launched
            found.setdefault(name_of(row), []).append(row)
    return found


def cell(rows: list[table.Row]) -> str:
    text = f"{max(r.registers for r in rows)}"
    if any(r.most_waves for r in rows):
        text += f", {min(r.occupancy for r in rows):.0%}"
    if units := [r for r in rows if r.unit]:
        best = max(units, key=lambda r: r.unit / r.loop)
        text += f", {best.unit} of {best.loop}"
    if most := max(r.private for r in rows):
        text += f", {most} B"
    return text


def read(text: str) -> Page:
    page, family, columns = Page(), "", []
    families = {title: family for family, title in FAMILIES.items()}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("## "):
            family = families.get(line[3:], "")
        elif line.startswith("| kernel |"):
            columns = cells[1:]
        elif family and line.startswith("| `"):
            row = {d: c for d, c in zip(columns, cells[1:], strict=True) if c != NOTHING}
            page.cells[family, cells[0].strip("`")] = row
        elif not family and line.startswith("| ") and cells[-1].isdigit():
            name, title, compiler, programs, failed = cells
            page.known[name] = Known(title, compiler, int(programs), int(failed))
    return page


def lacking(page: Page, device: devices.Device, results: list[tuple]) -> list[str]:
    """Kernels that the device is given and the page does not have."""
    if device.name not in page.columns():
        return []
    rows = [row for p, r in results for row in table.rows_of(device, p, r)]
    return [
        f"{device.name}: {family}/{kernel}"
        for family, kernel in by_kernel(rows)
        if device.name not in page.cells.get((family, kernel), {})
    ]


def kept(page: Page) -> set[tuple[str, str]]:
    """(device, "source:kernel") whose cell has bytes."""
    return {
        (device, f"{source_of(family, kernel)}:{kernel.partition(': ')[2] or kernel}")
        for (family, kernel), row in page.cells.items()
        for device, text in row.items()
        if text.endswith(" B")
    }


def problems(text: str, known: budget.Budget, there: dict[str, devices.Device]) -> list[str]:
    """Where the page is not what the descriptions, the table and the kernels' folder say."""
    page = read(text)
    found = [] if page.text() == text else ["it is not as it was written"]
    for name in sorted(set(there) ^ set(page.known)):
        found.append(f"{name} has no row" if name in there else f"{name} is not described")
    for name, row in page.known.items():
        if name in there and row.title != there[name].title:
            found.append(f"{name} is {there[name].title} now")
        if row.compiler != known.compilers.get(name):
            found.append(f"{name}: {row.compiler} here, {known.compilers.get(name)} in the table")
    for family, kernel in page.cells:
        path, name = KERNELS / source_of(family, kernel), kernel.partition(": ")[2] or kernel
        if not path.is_file() or not re.search(rf"\bvoid\s+{name}\(", path.read_text()):
            found.append(f"{family}: there is no kernel {kernel}")
    listed = {(device, kernel) for (device, kernel, _), e in known.entries.items() if e.private}
    for device, kernel in sorted(kept(page) - listed):
        found.append(f"{device}: the table has no reason why {kernel} keeps numbers in memory")
    return found
