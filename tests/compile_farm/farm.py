"""`./run compile-farm`: the plugin's kernels through the compilers of GPUs that are not here.

Compiles what the plugin asks for on each described device (corpus.py), side by side and each
program once (build/compile-farm/cache), and prints registers, spills, memory and waves of the
kernels, the worst first. Fails where budget.tsv allows less.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import threading
import time

import budget
import compilers
import corpus
import devices
import fetch
import page
import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
FARM = ROOT / "build/compile-farm"
GATE = ("gfx906", "gfx1030", "skl")
SKIPPED = 77
PARTS = {"clang": "amd", "ocloc": "intel", "ptxas": "nvidia", "spirv": "spirv"}


class Progress:
    """A line of how far it is: rewritten on a terminal, now and then in a log."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.compiled = total, 0, 0
        self.begin = self.last = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.lock = threading.Lock()  # compilations end in threads

    def step(self, device: str, cached: bool) -> None:
        with self.lock:
            self.count(device, cached)

    def count(self, device: str, cached: bool) -> None:
        self.done += 1
        self.compiled += not cached
        now = time.monotonic()
        if now - self.last < (0.5 if self.terminal else 15):
            return
        self.last = now
        left = (now - self.begin) / self.done * (self.total - self.done)
        end = "\r" if self.terminal else "\n"
        text = f"{self.done} of {self.total} compilations, {device}, {left:.0f} s left"
        print(f"{text:<70}", end=end, file=sys.stderr, flush=True)


def compiled(
    tools: compilers.Tools, version: str, device: devices.Device, program: corpus.Program
) -> tuple[dict, bool]:
    """The result, and whether it was known."""
    text = program.text()
    key = compilers.key_of(version, device, text, program.options)
    path = FARM / "cache" / key[:2] / f"{key}.json"
    if path.exists():
        return json.loads(path.read_text()), True
    result = compilers.compile_program(tools, device, text, program.options)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.{id(program)}")
    part.write_text(json.dumps(result))
    part.replace(path)
    return result, False


def in_turn(programs: list[corpus.Program]) -> list[corpus.Program]:
    """The first of each source, then the second of each: what time leaves out are repetitions."""
    place: dict[str, int] = {}
    numbered = []
    for program in programs:
        place[program.source] = place.get(program.source, 0) + 1
        numbered.append((place[program.source], program.source, len(numbered), program))
    return [program for *_, program in sorted(numbered, key=lambda n: n[:3])]


def compile_all(
    tools: compilers.Tools, work: list[tuple[devices.Device, list[corpus.Program]]], a: object
) -> tuple[dict[str, list[tuple]], int]:
    """(program, result) by device, and how many there was no time for."""
    end = time.monotonic() + a.seconds if a.seconds else float("inf")
    versions = {device.name: tools.version(device) for device, _ in work}
    jobs = [(device, p) for device, programs in work for p in in_turn(programs)]
    # By turns of the devices, too.
    order = {id(p): n for _, programs in work for n, p in enumerate(in_turn(programs))}
    jobs.sort(key=lambda job: order[id(job[1])])
    progress = Progress(len(jobs))
    results: dict[str, list[tuple]] = {device.name: [] for device, _ in work}

    def one(job: tuple[devices.Device, corpus.Program]) -> dict | None:
        device, program = job
        if time.monotonic() > end:
            return None
        result, cached = compiled(tools, versions[device.name], device, program)
        progress.step(device.name, cached)
        return result

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for (device, program), found in zip(jobs, pool.map(one, jobs), strict=True):
            if found is not None:
                results[device.name].append((program, found))
    took = time.monotonic() - progress.begin
    print(
        f"{progress.done} compilations in {took:.0f} s: {progress.compiled} anew, "
        f"{progress.done - progress.compiled} known"
    )
    return results, len(jobs) - progress.done


def summary(device: devices.Device, version: str, results: list[tuple]) -> str:
    failed = [(p, r) for p, r in results if r["status"] != "ok"]
    kept = {
        (row.source, row.kernel)
        for p, r in results
        for row in table.rows_of(device, p, r)
        if row.spills or row.private
    }
    return (
        f"{device.name:8} {version}: {len(results)} programs, {len(failed)} failed, "
        f"{len(kept)} kernels keep numbers in memory"
    )


def report(work: list, tools: compilers.Tools, results: dict[str, list[tuple]], a: object) -> None:
    rows: list[table.Row] = []
    for device, _ in work:
        for program, result in results[device.name]:
            rows += table.rows_of(device, program, result)
    if not a.gate:
        print(table.text(rows, a.worst))
        print(f"\n{table.families(rows)}")
    for device, _ in work:
        print(summary(device, tools.version(device), results[device.name]))
    if a.markdown:
        document = page.read(a.markdown.read_text() if a.markdown.exists() else "")
        for device, _ in work:
            document.put(device, tools.version(device), results[device.name], not a.only)
        a.markdown.write_text(document.text())
    if a.json:
        failures = [
            {"device": name, "source": p.source, "form": p.form, **r}
            for name, found in results.items()
            for p, r in found
            if r["status"] != "ok"
        ]
        document = {
            "compilers": {device.name: tools.version(device) for device, _ in work},
            "kernels": table.as_json(rows),
            "failures": failures,
        }
        pathlib.Path(a.json).write_text(json.dumps(document, indent=1))


def judge(
    work: list, tools: compilers.Tools, results: dict[str, list[tuple]], a: object, left: int
) -> bool:
    """Prints what is worse than the table; lowers the table where that is wished."""
    known, good = budget.read(a.table), True
    for device, _ in work:
        version = tools.version(device)
        if a.update:
            known.compilers[device.name] = version
        verdict = budget.judge(known, device, version, results[device.name])
        if a.update:
            refused = budget.update(known, verdict, a.reason, a.any_form)
            if not (a.gate or a.only or a.most or a.corpus or left):
                budget.settle(known, device.name, verdict)
            for text in refused:
                print(f"not raised without --reason: {text}")
            good &= not refused
            continue
        for text in verdict.notes:
            print(text)
        for text in verdict.worse:
            print(f"WORSE: {text}")
        if verdict.better:
            count = len(verdict.better)
            print(f"{device.name}: {count} rows of {a.table.name} are better now, as this one:")
            print(f"  {verdict.better[0]}\n  ./run compile-farm {device.name} --update lowers them")
        good &= not verdict.worse
    if a.update:
        budget.write(known, a.table)
        print(f"{a.table}: {len(known.entries)} rows")
    return good


def page_is_current(work: list, results: dict[str, list[tuple]]) -> bool:
    """Whether the documentation's page has each kernel; says which it lacks."""
    document = page.read(page.PATH.read_text())
    lacking = [
        text for device, _ in work for text in page.lacking(document, device, results[device.name])
    ]
    if lacking:
        print(f"{page.PATH.relative_to(ROOT)} lacks {', '.join(lacking)}:")
        print("  ./run compile-farm --all --only '^FAMILY/SOURCE' --markdown FILE adds it")
    return not lacking


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run compile-farm", description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="*", help=f"devices/*.toml; default: {', '.join(GATE)}")
    parser.add_argument("--all", action="store_true", help="all devices whose compiler is here")
    parser.add_argument("--only", default="", help="sources that this expression finds")
    parser.add_argument("--gate", action="store_true", help="a part of the corpus, for ctest")
    parser.add_argument("--seconds", type=float, default=0, help="of compiling; 0: no limit")
    parser.add_argument("--most", type=int, default=0, help="programs of each source; 0: all")
    parser.add_argument("--worst", type=int, default=40, help="kernels that the table shows")
    parser.add_argument("--json", help="the whole table, as JSON, into this file")
    parser.add_argument("--markdown", type=pathlib.Path, help="the documentation's page")
    parser.add_argument("--update", action="store_true", help="lower budget.tsv to what is")
    parser.add_argument("--reason", default="", help="with --update: raise it, too, for this")
    parser.add_argument("--any-form", action="store_true", help="with --reason: one row a kernel")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument(
        "--corpus", type=pathlib.Path, help="a folder of programs, not the plugin's"
    )
    parser.add_argument("--table", type=pathlib.Path, default=budget.PATH)
    parser.add_argument("--python", default="", help="that has torch; none: the kit alone")
    parser.add_argument("--offline", action="store_true", help="fetch no compilers")
    a = parser.parse_args()
    known = devices.devices()
    if unknown := [t for t in a.target if t not in known]:
        parser.error(f"there is no device {', '.join(unknown)}; there are {', '.join(known)}")
    a.devices = [known[t] for t in (known if a.all else a.target or GATE)]
    return a


def part_of(device: devices.Device) -> str:
    return "amd-new" if device.least_version >= fetch.NEW_CLANG else PARTS[device.compiler]


def usable(a: argparse.Namespace) -> tuple[compilers.Tools, list[devices.Device], bool]:
    """The compilers, the devices that they can serve, and whether some cannot be served."""
    if not a.offline:
        fetch.fetch(sorted({part_of(d) for d in a.devices} | {"amd"}))
    tools = compilers.Tools()
    served = []
    for device in a.devices:
        if why := tools.lacking(device):
            print(f"SKIPPED: {device.name}: {why}")
        else:
            served.append(device)
    return tools, served, len(served) < len(a.devices)


def programs(a: argparse.Namespace, served: list) -> list[tuple]:
    """(device, programs) of the devices; ends the process where nothing can make them."""
    built = corpus.built_in(a.build, a.python)
    if not a.corpus and (missing := built.missing()):
        sys.exit(f"compile-farm: not built: {', '.join(missing)}")
    if not a.corpus and not built.python:
        print("No Python with torch: the corpus is that of the conformance kit alone")
    kind = "gate" if a.gate else "whole"

    def made(device: devices.Device) -> list[corpus.Program]:
        if a.corpus:
            return corpus.read(a.corpus)
        folder = FARM / "corpus" / f"{device.name}-{kind}"
        whole = corpus.make(built, device, folder, a.gate)
        return corpus.few_of_each(whole, a.most) if a.most else whole

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        found = [[p for p in ps if re.search(a.only, p.source)] for ps in pool.map(made, served)]
    work = list(zip(served, found, strict=True))
    counts = ", ".join(f"{device.name} {len(found)}" for device, found in work)
    print(f"Programs: {counts} ({time.monotonic() - begin:.0f} s)", flush=True)
    return work


def main() -> int:
    a = arguments()
    tools, served, skipped = usable(a)
    work = programs(a, served) if served else []
    results, left = compile_all(tools, work, a)
    report(work, tools, results, a)
    if left:
        print(f"{left} compilations were not run for time; another run goes on with them")
    good = judge(work, tools, results, a, left)
    if a.gate and not a.corpus:
        good &= page_is_current(work, results)
    if skipped and os.environ.get("CI"):
        print("compile-farm: a compiler is missing, which CI does not allow", file=sys.stderr)
        return 1
    return 1 if not good else SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
