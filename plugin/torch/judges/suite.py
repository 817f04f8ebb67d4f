"""What every judge does: a pytest suite of others, part by part, on torch's CPU and on ocl.

A harness says what its suite is (`Suite`) and calls `main`. Each part, a file of the suite, runs in
a process of its own, once per device, with the fallback off; a process that crashes, or whose test
takes longer than --timeout, goes on with the test after it. The exit status is 1 where a test that
passes on the CPU does not on ocl, and has no reason in `Suite.explained`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

DEVICES = ("cpu", "ocl")
SECOND = "second call, us"
TOO_SLOW = 20  # times the CPU's: what computes takes less on any device, what compiles more


@dataclasses.dataclass(frozen=True)
class Suite:
    """A suite of tests: where it is, how it is told its device, what is known to differ."""

    harness: str  # the file that is run again, with --work, for each part
    describe: str
    parts: Callable[[argparse.Namespace], list[pathlib.Path]]
    environment: Callable[[str, argparse.Namespace], dict[str, str]]
    # {pattern of a test's name: the reason why its failure on ocl alone is no defect of ocl's}
    explained: dict[str, str]
    # the same by a pattern of the error, for what shows in many tests
    errors: dict[str, str] = dataclasses.field(default_factory=dict)
    # names of tests begin there
    root: Callable[[argparse.Namespace], pathlib.Path] = lambda options: pathlib.Path(
        options.scratch
    )
    # of pytest, beside the file
    command: Callable[[argparse.Namespace], list[str]] = lambda options: ["-W", "ignore"]
    prefix: str = ""  # of a test's name, left out in tables
    # a device's own copy of a part, and the name by which its tests are compared
    copy_for: Callable[[pathlib.Path, str], pathlib.Path] = lambda part, device: part
    common_name: Callable[[str], str] = lambda name: name
    judges_skipped: bool = False  # a failure is one where the CPU skips the test, too
    prepare: Callable[[str], list[Any]] = lambda device: []  # in the child; plugins of pytest


class Recorder:
    """In the child, a pytest plugin: a line before each test and one after it."""

    def __init__(self, only: str, seen: list[str]) -> None:
        self.only, self.seen = re.compile(only), set(seen)

    def say(self, **line: Any) -> None:
        print("\njudged " + json.dumps(line), file=sys.__stderr__, flush=True)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if i.nodeid not in self.seen and self.only.search(i.nodeid)]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say(begin=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.passed else error_of(report)
            notes = dict(report.user_properties)
            self.say(test=report.nodeid, state=report.outcome, reason=text, notes=notes)


class SecondCalls:
    """In the child, a pytest plugin: each test that passes runs twice more; the shorter time is
    kept, as what a library does anew at each call shows in both, a busy machine in one."""

    def __init__(self, device: str) -> None:
        self.device = device

    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Any:
        import torch

        arguments = {n: pyfuncitem.funcargs[n] for n in pyfuncitem._fixtureinfo.argnames}
        pyfuncitem.obj(**arguments)
        with contextlib.suppress(Exception):  # of a test that cannot be called twice
            if self.device == "ocl":
                torch.get_device_module("ocl").synchronize()  # what is compiled for the first call
            times = []
            for _ in range(2):
                begin = time.perf_counter()
                pyfuncitem.obj(**arguments)
                if self.device == "ocl":
                    torch.get_device_module("ocl").synchronize()
                times.append(time.perf_counter() - begin)
            pyfuncitem.user_properties.append((SECOND, round(min(times) * 1e6)))
        return True


def error_of(report: Any) -> str:
    """The last exception that pytest shows, and Hypothesis' example that led there."""
    text = str(report.longrepr)
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Failed|Group)\b", line)]
    examples = [line for line in lines if line.startswith("Falsifying example")]
    return " ".join([*(errors[-1:] or lines[:1]), *examples[-1:]])[:400] or text[-200:]


def work(suite: Suite, file: pathlib.Path) -> int:
    """In the child: the tests of one part that were not seen yet."""
    import pytest

    told = json.loads(file.read_text())
    plugins = [Recorder(told["only"], told["seen"]), *suite.prepare(told["device"])]
    if told["second_calls"]:
        for plugin in plugins:
            if hasattr(plugin, "compares"):
                plugin.compares = False
        plugins.append(SecondCalls(told["device"]))
    return int(pytest.main(told["command"], plugins=plugins))


def run_part(
    suite: Suite, part: pathlib.Path, device: str, options: argparse.Namespace
) -> dict[str, dict]:
    """All tests of one file on one device; goes on behind a test that ended the process."""
    results: dict[str, dict] = {}
    while True:
        ended = run_rest(suite, part, device, options, results)
        if ended is None:
            return results
        name, how = ended
        results[name] = {"state": "crashed" if how != "hung" else how, "reason": how}
        if "::" not in name:  # outside of tests: it would end there again
            return results


def start(
    suite: Suite, part: pathlib.Path, device: str, options: argparse.Namespace, seen: list[str]
) -> subprocess.Popen:
    root = suite.root(options)
    file = suite.copy_for(part, device)
    command = [str(file), "-q", "-p", "no:cacheprovider", f"--rootdir={root}"]
    told = {
        "command": [*command, *suite.command(options)],
        "device": device,
        "only": options.only,
        "second_calls": options.second_calls,
        "seen": seen,
    }
    name = "-".join([device, *part.parts[-3:-1], part.stem])
    orders = pathlib.Path(options.scratch) / f"{name}.json"
    orders.write_text(json.dumps(told))
    env = {
        **os.environ,
        "HYPOTHESIS_STORAGE_DIRECTORY": str(options.scratch),
        "OCLTENSOR_ENABLE_FALLBACK": "0",
        "OCLTENSOR_LOG_LEVEL": "error",
        "OMP_NUM_THREADS": "1",
        **suite.environment(device, options),
    }
    return subprocess.Popen(
        [sys.executable, suite.harness, "--work", str(orders)],
        cwd=root,
        env=env,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def run_rest(
    suite: Suite,
    part: pathlib.Path,
    device: str,
    options: argparse.Namespace,
    results: dict[str, dict],
) -> tuple[str, str] | None:
    """Fills `results`; the test in which the process ended, and how, None if it came to its end."""
    process = start(suite, part, device, options, list(results))
    hung: list[bool] = []

    def stop() -> None:
        hung.append(True)
        process.kill()

    def clock() -> threading.Timer:
        timer = threading.Timer(options.timeout, stop)
        timer.start()
        return timer

    current, last = None, ""
    timer = clock()
    for line in process.stderr or ():
        if not line.startswith("judged "):
            last = line.strip() or last
            continue
        answer = json.loads(line[7:])
        current = answer.get("begin")
        if current is None:
            results[answer.pop("test")] = answer
        timer.cancel()
        timer = clock()
    timer.cancel()
    code = process.wait()
    if process.stderr is not None:
        process.stderr.close()
    if code in (0, 1, 5):  # pytest's: passed, some failed, none to run
        return None
    return current or part.name, "hung" if hung else f"exit {code}: {last}"[:300]


def judge(suite: Suite, options: argparse.Namespace) -> dict[str, dict[str, dict]]:
    """{device: {test: {state, reason}}}"""
    found: dict[str, dict[str, dict]] = {device: {} for device in options.devices}
    files = [f for f in suite.parts(options) if re.search(options.parts, part_of(str(f)))]
    todo = [(f, d) for f in files for d in found]
    lock = threading.Lock()

    def serve() -> None:
        while True:
            with lock:
                if not todo:
                    return
                part, device = todo.pop(0)
            results = run_part(suite, part, device, options)
            with lock:
                found[device].update({suite.common_name(n): r for n, r in results.items()})
                if options.json:
                    options.json.write_text(json.dumps(found, indent=0, sort_keys=True))
                print(f"{device} {part_of(str(part))}: {totals(results)}", file=sys.stderr)
                for name, result in results.items():
                    if options.list and result["state"] not in ("passed", "skipped"):
                        print(f"  {device} {name}: {result['reason']}", file=sys.stderr)
                sys.stderr.flush()

    threads = [threading.Thread(target=serve) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def part_of(name: str) -> str:
    """The file of a test, or of a path, with the folder that is not called tests: stats/rank"""
    file = pathlib.PurePath(name.partition("::")[0])
    folder = file.parent.parent if file.parent.name == "tests" else file.parent
    return f"{folder.name}/{file.stem.removeprefix('test_')}"


def totals(results: dict[str, dict]) -> str:
    counts = collections.Counter(r["state"] for r in results.values())
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "none"


def share(results: dict[str, dict]) -> str:
    """How many of the tests that ran have passed."""
    ran = [r["state"] == "passed" for r in results.values() if r["state"] != "skipped"]
    return f"{100 * sum(ran) / len(ran):.1f} %" if ran else "-"


def differences(found: dict[str, dict[str, dict]]) -> list[tuple[str, dict, dict]]:
    """Tests with other states on ocl than on the CPU, without those that the suite itself skips
    on devices other than the CPU."""
    missing = {"state": "missing", "reason": ""}
    if set(found) != set(DEVICES):
        return []
    theirs, ours = found["cpu"], found["ocl"]
    pairs = [(n, theirs.get(n, missing), ours.get(n, missing)) for n in sorted({*theirs, *ours})]
    return [(n, a, b) for n, a, b in pairs if b["state"] not in (a["state"], "skipped")]


def explanation(suite: Suite, name: str, error: str) -> str:
    found = [why for pattern, why in suite.explained.items() if re.search(pattern, name)]
    found += [why for pattern, why in suite.errors.items() if re.search(pattern, error)]
    return next(iter(found), "")


def second_calls(found: dict[str, dict[str, dict]]) -> str:
    """Markdown: the tests whose second call takes TOO_SLOW times the CPU's, worst first."""
    if set(found) != set(DEVICES):
        return ""
    times = [
        {n: r["notes"][SECOND] for n, r in found[d].items() if SECOND in r.get("notes", {})}
        for d in DEVICES
    ]
    both = sorted(set(times[0]) & set(times[1]))
    if not both:
        return ""
    ratios = sorted(((times[1][n] / max(times[0][n], 1), n) for n in both), reverse=True)
    middle = ratios[len(ratios) // 2][0]
    text = f"\n{len(both)} second calls, the middle one {middle:.1f} times the CPU's; over "
    text += f"{TOO_SLOW} times:\n\n| test | CPU, us | ocl, us | ratio |\n|---|---|---|---|\n"
    for ratio, name in ratios:
        if ratio >= TOO_SLOW:
            text += f"| `{name}` | {times[0][name]} | {times[1][name]} | {ratio:.0f} |\n"
    return text


def page(suite: Suite, found: dict[str, dict[str, dict]], by_part: bool = False) -> str:
    """Markdown: the totals, those of each part, and what differs."""
    text = "| device | tests | passed of those not skipped |\n|---|---|---|\n"
    for device, results in found.items():
        text += f"| {device} | {totals(results)} | {share(results)} |\n"
    if by_part:
        text += f"\n| part | {' | '.join(found)} |\n|---|{'---|' * len(found)}\n"
        for part in sorted({part_of(name) for results in found.values() for name in results}):
            own = [{n: r for n, r in f.items() if part_of(n) == part} for f in found.values()]
            text += f"| {part} | {' | '.join(map(totals, own))} |\n"
    notes: collections.Counter = collections.Counter()
    for result in found.get("ocl", {}).values():
        notes.update({k: n for k, n in result.get("notes", {}).items() if k != SECOND})
    text += second_calls(found)
    text += "".join(f"\n{name}: {count}\n" for name, count in sorted(notes.items()))
    rows = differences(found)
    if rows:
        text += "\n| test | CPU | ocl | what happened |\n|---|---|---|---|\n"
    for name, theirs, ours in rows:
        why = explanation(suite, name, ours["reason"]) or (ours["reason"] or theirs["reason"])
        why = " ".join(why.split()).replace("|", "\\|")[:240]
        short = name.removeprefix(suite.prefix)
        text += f"| `{short}` | {theirs['state']} | {ours['state']} | {why} |\n"
    return text


def parser(suite: Suite) -> argparse.ArgumentParser:
    """The options of every harness."""
    p = argparse.ArgumentParser(
        description=suite.describe, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--only", default="", help="tests whose name matches this regular expression")
    p.add_argument("--parts", default="", help="files whose folder/name matches this one")
    p.add_argument("--devices", nargs="+", choices=DEVICES, default=DEVICES)
    p.add_argument("--timeout", type=float, default=300, help="seconds for one test")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--list", action="store_true", help="print every failure of each device")
    p.add_argument("--by-part", action="store_true", help="add a table with a row for each file")
    p.add_argument("--second-calls", action="store_true", help="run each test again, time that")
    p.add_argument("--out", type=pathlib.Path, help="write the table there, too")
    p.add_argument(
        "--json", type=pathlib.Path, help="write every test's result there, part by part"
    )
    return p


def main(suite: Suite, p: argparse.ArgumentParser, check: Callable = lambda options: None) -> int:
    if sys.argv[1:2] == ["--work"]:
        return work(suite, pathlib.Path(sys.argv[2]))
    options = p.parse_args()
    check(options)
    with tempfile.TemporaryDirectory() as options.scratch:
        found = judge(suite, options)
    text = page(suite, found, options.by_part)
    print(text)
    if options.out:
        options.out.write_text(text)
    rows = differences(found)
    worth = ("passed", "skipped") if suite.judges_skipped else ("passed",)
    worse = [(n, ours) for n, theirs, ours in rows if theirs["state"] in worth]
    worse = [(n, ours) for n, ours in worse if ours["state"] != "passed"]
    bad = [n for n, ours in worse if not explanation(suite, n, ours["reason"])]
    unread = [n for results in found.values() for n in results if "::" not in n]
    return 1 if bad or unread or not all(found.values()) else 0
