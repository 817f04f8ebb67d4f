"""The array API standard's own test suite on ocl and on torch's CPU: what fails on ocl alone.

usage: array_api.py CHECKOUT [--examples N] [--only REGEX] [--parts NAMES] [--timeout S]
[--jobs N] [--list] [--out FILE] [--json FILE]

CHECKOUT is a copy of github.com/data-apis/array-api-tests with its submodule; pytest, hypothesis,
ndindex and array_api_compat have to be installed. Each file of the suite is a part and runs in a
process of its own, once per device, with the same examples and the fallback off. A process that
crashes, or whose test takes longer than --timeout, goes on with the test after it. The exit status
is 1 where a test that passes on the CPU does not on ocl, and has no reason in EXPLAINED.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
from typing import Any

NAMESPACE = (
    'exec(\'import torch; import torch_ocl; torch.set_default_device("{}"); '
    "import array_api_compat.torch as xp')"
)
# Tests that ocl alone fails, with the reason why that is no defect of ocl's.
EXPLAINED = {
    "test_dlpack": "PyTorch's own DLPack methods know no device types of other makers; "
    "torch.utils.dlpack works",
    "test_vecdot": "products of uint16 matrices have no kernel: declined",
}


class Recorder:
    """In the child, a pytest plugin: a line before each test and one after it."""

    def __init__(self, only: str, seen: list[str]) -> None:
        self.only, self.seen = re.compile(only), set(seen)

    def say(self, **line: Any) -> None:
        print("judged " + json.dumps(line), file=sys.__stderr__, flush=True)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if i.nodeid not in self.seen and self.only.search(i.nodeid)]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say(begin=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.passed else error_of(report)
            self.say(test=report.nodeid, state=report.outcome, reason=text)


def error_of(report: Any) -> str:
    """The last exception that pytest shows, and the example that led there."""
    text = str(report.longrepr)
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Failed|Group)\b", line)]
    examples = [line for line in lines if line.startswith("Falsifying example")]
    return " ".join([*errors[-1:], *examples[-1:]])[:400] or text[-200:]


def work(arguments: dict[str, Any]) -> int:
    import pytest

    recorder = Recorder(arguments["only"], arguments["seen"])
    return int(pytest.main(arguments["command"], plugins=[recorder]))


def run_part(part: pathlib.Path, device: str, options: argparse.Namespace) -> dict[str, dict]:
    """All tests of one file on one device; goes on behind a test that ended the process."""
    results: dict[str, dict] = {}
    while True:
        ended = run_rest(part, device, options, results)
        if ended is None:
            return results
        name, how = ended
        results[name] = {"state": "crashed" if how != "hung" else how, "reason": how}
        if not name.startswith("array_api_tests"):
            return results


def run_rest(
    part: pathlib.Path, device: str, options: argparse.Namespace, results: dict[str, dict]
) -> tuple[str, str] | None:
    """Fills `results`; the test in which the process ended, and how, None if it came to its end."""
    command = [str(part), "-q", "-p", "no:cacheprovider", "--disable-deadline", "--derandomize"]
    arguments = {
        "command": [*command, f"--max-examples={options.examples}"],
        "only": options.only,
        "seen": list(results),
    }
    env = dict(
        os.environ,
        ARRAY_API_TESTS_MODULE=NAMESPACE.format(device),
        HYPOTHESIS_STORAGE_DIRECTORY=options.scratch,
        OCLTENSOR_ENABLE_FALLBACK="0",
        OCLTENSOR_LOG_LEVEL="error",
        OMP_NUM_THREADS="1",
    )
    process = subprocess.Popen(
        [sys.executable, __file__, str(options.checkout), "--work", json.dumps(arguments)],
        cwd=options.checkout,
        env=env,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    hung: list[bool] = []

    def stop() -> None:
        hung.append(True)
        process.kill()

    current, last = None, ""
    timer = threading.Timer(options.timeout, stop)
    timer.start()
    for line in process.stderr:
        if not line.startswith("judged "):
            last = line.strip() or last
            continue
        answer = json.loads(line[7:])
        current = answer.get("begin")
        if current is None:
            results[answer["test"]] = {"state": answer["state"], "reason": answer["reason"]}
        timer.cancel()
        timer = threading.Timer(options.timeout, stop)
        timer.start()
    timer.cancel()
    code = process.wait()
    if code in (0, 1, 5):  # pytest's: passed, some failed, none to run
        return None
    return current or part.name, "hung" if hung else f"exit {code}: {last}"[:300]


def judge(options: argparse.Namespace) -> dict[str, dict[str, dict]]:
    """{device: {test: {state, reason}}}"""
    found: dict[str, dict[str, dict]] = {"cpu": {}, "ocl": {}}
    files = sorted((options.checkout / "array_api_tests").glob("test_*.py"))
    todo = [(f, d) for f in files if re.search(options.parts, f.stem) for d in found]
    lock = threading.Lock()

    def serve() -> None:
        while True:
            with lock:
                if not todo:
                    return
                part, device = todo.pop(0)
            results = run_part(part, device, options)
            with lock:
                found[device].update(results)
                print(f"{device} {part.stem}: {totals(results)}", file=sys.stderr, flush=True)
                for name, result in results.items():
                    if options.list and result["state"] not in ("passed", "skipped"):
                        print(f"  {device} {name}: {result['reason']}", file=sys.stderr)

    threads = [threading.Thread(target=serve) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def totals(results: dict[str, dict]) -> str:
    counts = collections.Counter(r["state"] for r in results.values())
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "none"


def differences(found: dict[str, dict[str, dict]]) -> list[tuple[str, dict, dict]]:
    """Tests with other states on ocl than on the CPU."""
    missing = {"state": "missing", "reason": ""}
    names = sorted({*found["cpu"], *found["ocl"]})
    pairs = [(n, found["cpu"].get(n, missing), found["ocl"].get(n, missing)) for n in names]
    return [(n, a, b) for n, a, b in pairs if a["state"] != b["state"]]


def page(found: dict[str, dict[str, dict]]) -> str:
    """Markdown: the totals, and what differs."""
    text = "| device | tests |\n|---|---|\n"
    text += "".join(f"| {device} | {totals(results)} |\n" for device, results in found.items())
    rows = differences(found)
    if rows:
        text += "\n| test | CPU | ocl | what happened |\n|---|---|---|---|\n"
    for name, theirs, ours in rows:
        why = explanation(name) or (ours["reason"] or theirs["reason"])
        why = " ".join(why.split()).replace("|", "\\|")[:240]
        short = name.removeprefix("array_api_tests/")
        text += f"| `{short}` | {theirs['state']} | {ours['state']} | {why} |\n"
    return text


def explanation(name: str) -> str:
    return next((why for pattern, why in EXPLAINED.items() if re.search(pattern, name)), "")


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())
    p.add_argument("--examples", type=int, default=20, help="of Hypothesis, for each test")
    p.add_argument("--only", default="", help="tests whose name matches this regular expression")
    p.add_argument("--parts", default="", help="files whose name matches this one")
    p.add_argument("--timeout", type=float, default=300, help="seconds for one test")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--list", action="store_true", help="print every failure of each device")
    p.add_argument("--out", type=pathlib.Path, help="write the table there, too")
    p.add_argument("--json", type=pathlib.Path, help="write every test's result there")
    p.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.work is not None:
        return work(options.work)
    if not (options.checkout / "array-api" / "src").is_dir():
        p.error(f"{options.checkout} has no array-api/src: its submodule is not checked out")
    with tempfile.TemporaryDirectory() as options.scratch:
        found = judge(options)
    text = page(found)
    print(text)
    if options.out:
        options.out.write_text(text)
    if options.json:
        options.json.write_text(json.dumps(found, indent=0, sort_keys=True))
    bad = [n for n, a, b in differences(found) if a["state"] == "passed" and not explanation(n)]
    return 1 if bad or not found["ocl"] else 0


if __name__ == "__main__":
    sys.exit(main())
