"""The committed table of what kernels keep in memory, and of compilers' known failures.

budget.tsv has a row for each (device, kernel, form) that spills, keeps a private array in memory,
or is not compiled; all else compiles and keeps nothing. Numbers may only fall: `--update` lowers
them and takes rows out, and adds some only with `--reason DEFECT`. Columns: device, reason, spills
(or the failure's status), private bytes, source:kernel, form ("*": any).
"""

from __future__ import annotations

import dataclasses
import pathlib

import devices
import table

PATH = pathlib.Path(__file__).parent / "budget.tsv"
HEAD = """\
# What kernels still keep in memory on other GPUs, and what their compilers refuse: budget.py.
# The rows "compiler" say whose code it is; with another one only failures count.
"""


@dataclasses.dataclass(frozen=True)
class Entry:
    reason: str
    status: str = "ok"
    spills: int = 0
    private: int = 0


Key = tuple[str, str, str]  # device, "source:kernel" ("source" of failures), form


@dataclasses.dataclass
class Budget:
    compilers: dict[str, str] = dataclasses.field(default_factory=dict)
    entries: dict[Key, Entry] = dataclasses.field(default_factory=dict)

    def entry(self, key: Key) -> Entry | None:
        return self.entries.get(key) or self.entries.get((*key[:2], "*"))


def read(path: pathlib.Path = PATH) -> Budget:
    budget = Budget()
    if not path.exists():
        return budget
    for text in path.read_text().splitlines():
        if not text or text.startswith("#"):
            continue
        device, reason, *rest = text.split("\t")
        if reason == "compiler":
            budget.compilers[device] = rest[0]
            continue
        spills, private, kernel, form = rest
        if spills.isdigit():
            entry = Entry(reason, "ok", int(spills), int(private))
        else:
            entry = Entry(reason, spills)
        budget.entries[device, kernel, form] = entry
    return budget


def write(budget: Budget, path: pathlib.Path = PATH) -> None:
    lines = [f"{device}\tcompiler\t{text}" for device, text in sorted(budget.compilers.items())]
    for (device, kernel, form), e in sorted(budget.entries.items()):
        figures = f"{e.spills}\t{e.private}" if e.status == "ok" else f"{e.status}\t-"
        lines.append(f"{device}\t{e.reason}\t{figures}\t{kernel}\t{form}")
    path.write_text(HEAD + "\n".join(lines) + "\n")


@dataclasses.dataclass
class Verdict:
    worse: list[str] = dataclasses.field(default_factory=list)  # these fail the gate
    better: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    measured: dict[Key, Entry] = dataclasses.field(default_factory=dict)


def failure_is_known(known: Entry | None, status: str) -> bool:
    return known is not None and known.status == status


def judge_program(
    budget: Budget, device: devices.Device, program: object, result: dict, figures: bool, v: Verdict
) -> None:
    key = (device.name, program.source, program.form)
    known = budget.entry(key)
    if result["status"] != "ok":
        v.measured[key] = Entry(known.reason if known else "", result["status"])
        if not failure_is_known(known, result["status"]):
            said = f"{result['status']}: {result['message']}"
            v.worse.append(f"{device.name}: {program.source} ({program.form}): {said}")
        return
    v.measured[key] = Entry("")
    if key in budget.entries:
        v.better.append(f"{device.name}: {program.source} ({program.form}): compiles now")
    for row in table.rows_of(device, program, result) if figures else ():
        key = (device.name, f"{row.source}:{row.kernel}", row.form)
        known = budget.entry(key) or Entry("")
        v.measured[key] = Entry(known.reason, "ok", row.spills, row.private)
        now, before = (row.spills, row.private), (known.spills, known.private)
        said = (
            f"{device.name}: {key[1]} ({row.form}): {now[0]} spilled, {now[1]} bytes in memory; "
            f"{before[0]} and {before[1]} are allowed"
        )
        if now[0] > before[0] or now[1] > before[1]:
            v.worse.append(said)
        elif now != before and key in budget.entries:
            v.better.append(said)


def judge(budget: Budget, device: devices.Device, compiler: str, results: list[tuple]) -> Verdict:
    """Compares (program, result) of one device with the table."""
    verdict = Verdict()
    listed = budget.compilers.get(device.name)
    figures = listed == compiler
    if not figures:
        why = f"the table is of {listed}" if listed else "the table has none"
        verdict.notes.append(f"{device.name}: {compiler}, and {why}: only failures count")
    for program, result in results:
        judge_program(budget, device, program, result, figures, verdict)
    return verdict


def is_clean(entry: Entry) -> bool:
    return entry.status == "ok" and not entry.spills and not entry.private


def within(entry: Entry, limit: Entry) -> bool:
    fits = entry.status == limit.status
    return fits and entry.spills <= limit.spills and entry.private <= limit.private


def widened(entry: Entry, other: Entry | None) -> Entry:
    """The most of both, for rows of any form."""
    if other is None or other.status != entry.status:
        return entry
    most = max(entry.spills, other.spills), max(entry.private, other.private)
    return dataclasses.replace(entry, spills=most[0], private=most[1])


def update(budget: Budget, verdict: Verdict, reason: str, any_form: bool = False) -> list[str]:
    """Lowers rows to what was measured; adds and raises some only for a reason. What it refused."""
    refused = []
    for key, entry in sorted(verdict.measured.items()):
        known = budget.entry(key)
        if is_clean(entry):
            budget.entries.pop(key, None)
        elif within(entry, known or Entry("")):
            if key in budget.entries:
                budget.entries[key] = dataclasses.replace(entry, reason=known.reason)
        elif not reason:
            refused.append(f"{key[0]}: {key[1]} ({key[2]})")
        elif any_form:
            budget.entries.pop(key, None)
            any_key = (*key[:2], "*")
            raised = widened(entry, budget.entries.get(any_key))
            budget.entries[any_key] = dataclasses.replace(raised, reason=reason)
        else:
            budget.entries[key] = dataclasses.replace(entry, reason=reason)
    return refused


def settle(budget: Budget, device: str, verdict: Verdict) -> None:
    """After the device's whole corpus: takes out rows of forms that are no more, and lowers those
    of any form to the most that a form of theirs has."""
    most: dict[Key, Entry] = {}
    for key, entry in verdict.measured.items():
        if key not in budget.entries and not is_clean(entry):
            any_key = (*key[:2], "*")
            most[any_key] = widened(entry, most.get(any_key))
    for key in [k for k in budget.entries if k[0] == device]:
        if key[2] != "*" and key not in verdict.measured:
            del budget.entries[key]
        elif key[2] == "*" and key not in most:
            del budget.entries[key]
        elif key[2] == "*":
            reason = budget.entries[key].reason
            budget.entries[key] = dataclasses.replace(most[key], reason=reason)
