"""op_db where the device declines: every operator that it declines for its type, or that a setting
disables, runs on the CPU when the fallback is on.

usage: fallbacks.py [--only REGEX] [--samples N] [--timeout S] [--without float64|operations]
                    [--jobs N] [--log FILE]

float64: all of op_db's float64 samples, results and gradients, on a device without float64
(OCLTENSOR_FLOAT64=0). operations: of each entry's float32 samples (another type's where it has no
float32) the operators of the device that they call, forward and backward, disabled in turn. Either
part prints a table: pairs of an entry and what it has to do without, moved to the CPU and right,
right on the device all the same (another operator did it), refused with a reason, wrong. What is
refused without saying why not, wrong or a crash makes the exit status 1. Entries that took longer
than --timeout keep what they had answered, and are named. With --log each entry's answers are added
to a file, a line of JSON each; entries that it has are not asked again, so a sweep can go on later.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import sweeping

# What a refusal has to say: why the CPU cannot do it instead.
WHY = re.compile("cannot run on the CPU instead, because|cannot be disabled|autocast")


def samples_of(op: Any, dtype: Any, most: int) -> tuple[list[Any], bool]:
    import torch

    grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = op.sample_inputs("cpu", dtype, requires_grad=grad)
        return list(itertools.islice(found, most)), grad and isinstance(dtype, torch.dtype)


def outcome(op: Any, sample: Any, dtype: Any, grad: bool) -> tuple[str, str]:
    """What a sample does: its state, and why it is not moved."""
    import torch
    import values
    from samples import NoReference

    before = sum(torch.ocl.fallback_counts().values())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values.run_sample(op, sample, dtype, False)
            if grad:
                values.run_sample(op, sample, dtype, True)
            torch.ocl.synchronize()
    except NoReference as error:
        return "no reference", str(error)[:200]
    except NotImplementedError as error:
        text = " ".join(str(error).split())
        return ("refused" if WHY.search(text) else "wrong"), text[:400]
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    moved = sum(torch.ocl.fallback_counts().values()) > before
    return ("moved" if moved else "right on ocl"), ""


def called(op: Any, sample: Any, grad: bool) -> list[str]:
    """The names under which what a sample calls can be disabled: the plugin's operators, by its own
    statistics, and composed ones, by PyTorch's dispatcher."""
    import torch
    from samples import call
    from torch.utils._python_dispatch import TorchDispatchMode

    names: set[str] = set()

    class Record(TorchDispatchMode):
        def __torch_dispatch__(  # noqa: ANN204
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ):
            names.add(func._schema.name.removeprefix("aten::"))
            return func(*args, **(kwargs or {}))

    with (
        tempfile.NamedTemporaryFile(suffix=".json") as file,
        torch.ocl.profiler.profile(path=file.name),
    ):
        torch.ocl.profiler.reset_statistics()
        with warnings.catch_warnings(), Record():
            warnings.simplefilter("ignore")
            call(op, sample, "ocl", grad)
        for row in torch.ocl.profiler.statistics()["operators"]:
            names.add(row["name"].split(".")[0])
    return sorted(names)


def disabled_in_turn(op: Any, sample: Any, dtype: Any, grad: bool) -> Iterator[tuple[str, ...]]:
    import torch

    ocl = torch.backends.ocl
    try:
        names = called(op, sample, grad)
    except Exception as error:
        yield "all", "no reference", str(error)[:200]
        return
    for name in names:
        try:
            scope = ocl.operations_disabled(name)
            scope.__enter__()
        except (
            ValueError,
            RuntimeError,
        ):  # no operator of the device, or one that every copy needs
            continue
        try:
            yield name, *outcome(op, sample, dtype, grad)
        finally:
            scope.__exit__(None, None, None)


def answers(op: Any, without: str, most: int) -> Iterator[tuple[str, ...]]:
    """(what it has to do without, state, reason) of an entry."""
    import torch

    has = op.supported_dtypes("cpu")
    dtype = torch.float64 if without == "float64" else torch.float32
    if dtype not in has:
        if without == "float64" or not has:
            return
        dtype = sorted(has, key=str)[0]
    try:
        found, grad = samples_of(op, dtype, most)
    except Exception as error:
        yield without, "no reference", str(error)[:200]
        return
    for sample in found:
        if without == "float64":
            yield without, *outcome(op, sample, dtype, grad)
        else:
            yield from disabled_in_turn(op, sample, dtype, grad)


def by_name() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db if not op.name.startswith("jiterator")}


def work(without: str, most: int) -> None:
    """A worker: names come in, a line for each answer of the entry goes out, then an empty one."""
    import torch
    import torch_ocl  # noqa: F401  registers the device

    entries = by_name()
    torch.ones(1, device="ocl").sum().item()
    print("ready", flush=True)
    for line in sys.stdin:
        for answer in answers(entries[line.strip()], without, most):
            print("answer " + json.dumps(answer), flush=True)
        print("answer null", flush=True)


class Worker:
    def __init__(self, without: str, options: argparse.Namespace) -> None:
        self.without, self.options = without, options
        self.start()

    def start(self) -> None:
        lacking = {"OCLTENSOR_FLOAT64": "0"} if self.without == "float64" else {}
        self.process = sweeping.start_worker(
            __file__,
            *("--work", self.without, "--samples", str(self.options.samples)),
            OCLTENSOR_ENABLE_FALLBACK="1",
            OMP_NUM_THREADS="1",
            **lacking,
        )

    def ask(self, name: str) -> list[list[str]]:
        """All answers of an entry; where the process ended, the last one says how."""
        late: list[bool] = []

        def stop() -> None:
            late.append(True)
            self.process.kill()

        timer = threading.Timer(self.options.timeout, stop)
        timer.start()
        found: list[list[str]] = []
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:  # operators may print
                if line.startswith("answer "):
                    answer = json.loads(line[7:])
                    if answer is None:
                        return found
                    found.append(answer)
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        ended = self.process.wait()
        self.start()
        if late:
            return [*found, ["the rest", "not ended", f"more than {self.options.timeout:g} s"]]
        return [*found, ["all", "crashed", f"the process ended: {ended}"]]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


# The worse of two outcomes of one pair stays.
ORDER = ("no reference", "right on ocl", "moved", "refused", "not ended", "wrong", "crashed")


class Log:
    """The answers of entries, in a file where one is given: lines [part, entry, answers]."""

    def __init__(self, path: str | None) -> None:
        self.answers: dict[tuple[str, str], list[list[str]]] = {}
        self.lock = threading.Lock()
        self.file = open(path, "a+") if path else None  # noqa: SIM115  open while the sweep lasts
        if self.file:
            self.file.seek(0)
            for line in self.file:
                without, name, answers = json.loads(line)
                self.answers[without, name] = answers

    def add(self, without: str, name: str, answers: list[list[str]]) -> None:
        with self.lock:
            self.answers[without, name] = answers
            if self.file:
                print(json.dumps([without, name, answers]), file=self.file, flush=True)


def ask_all(without: str, names: list[str], log: Log, options: argparse.Namespace) -> None:
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    left = [name for name in names if (without, name) not in log.answers]
    for name in left:
        waiting.put(name)

    def serve() -> None:
        worker = Worker(without, options)
        with contextlib.suppress(queue.Empty):
            while True:
                name = waiting.get_nowait()
                log.add(without, name, worker.ask(name))
                done = len(left) - waiting.qsize()
                if sys.stderr.isatty() or done % 50 == 0:
                    end = "\r" if sys.stderr.isatty() else "\n"
                    print(f"\033[K{done}/{len(left)} {name}", end=end, file=sys.stderr, flush=True)
        worker.close()

    sweeping.in_threads(serve, min(options.jobs, len(left)))


def sweep(without: str, names: list[str], log: Log, options: argparse.Namespace) -> int:
    ask_all(without, names, log, options)
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for name in names:
        for what, state, reason in log.answers.get((without, name), []):
            before = pairs.get((name, what), (ORDER[0], ""))
            pairs[name, what] = max(before, (state, reason), key=lambda r: ORDER.index(r[0]))
    counts = collections.Counter(state for state, _ in pairs.values())
    entries = len({name for name, _ in pairs})
    print(
        f"without {without}: {entries} entries, {len(pairs)} pairs: "
        + ", ".join(f"{s} {counts[s]}" for s in ORDER)
    )
    for (name, what), (state, reason) in sorted(pairs.items()):
        if state in ("refused", "not ended", "wrong", "crashed"):
            print(f"  {state:8} {name}, without {what}: {reason}")
    return counts["wrong"] + counts["crashed"]


def main() -> int:
    p = sweeping.parser(__doc__)
    p.add_argument("--only", default="", help="entries that match this regular expression")
    p.add_argument("--samples", type=int, default=100000, help="at most so many of an entry")
    p.add_argument("--timeout", type=float, default=900.0, help="seconds for one entry")
    p.add_argument("--without", choices=("float64", "operations"), help="one of the two parts")
    p.add_argument("--jobs", type=int, default=1, help="processes at a time")
    p.add_argument("--log", help="a file of answers, which a later sweep goes on with")
    p.add_argument("--work", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.work:
        work(options.work, options.samples)
        return 0
    listing = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import fallbacks, json"
    )
    text = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            f"{listing}; print(json.dumps(sorted(fallbacks.by_name())))",
        ],
        env=dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [n for n in json.loads(text.splitlines()[-1]) if re.search(options.only, n)]
    parts = [options.without] if options.without else ["float64", "operations"]
    log = Log(options.log)
    bad = sum(sweep(without, names, log, options) for without in parts)
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())
