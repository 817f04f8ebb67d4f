"""A trace of ResNet-18 training steps, checked: what Perfetto shows of it is true.

usage: trace_steps.py [--steps 2] [--batch 8] [--size 64] [--out FILE] [--overhead]

Prints figures and exits with 1 if a check fails:
- the file is strict JSON, every event has its members, and times do not run backwards;
- on each stream, which is in order, no two commands overlap;
- every kernel has the operator whose call enqueued it, and an arrow from there;
- the kernels' total is the stream's busy time (the union of its slices) within 5 %.
--overhead also times steps without and with the profiler, in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from typing import Any

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch import nn
from torch.nn import functional as F

HOST = 1
ROUNDING = 0.002  # us: two stamps, each rounded
SLACK = 300.0  # us: between the clocks of host and device
MEMBERS = {
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "i": {"name", "cat", "pid", "tid", "ts", "s", "args"},
    "C": {"name", "pid", "ts", "args"},
    "M": {"name", "pid", "tid", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "b": {"name", "cat", "id", "pid", "tid", "ts", "args"},
    "e": {"name", "cat", "id", "pid", "tid", "ts", "args"},
}


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.short = nn.Sequential()
        if stride > 1 or inside != outside:
            self.short = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm_one(self.one(x)))
        return F.relu(self.norm_two(self.two(y)) + self.short(x))


class ResNet18(nn.Module):
    """He et al. 2015, with ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        widths = [64, 64, 128, 256, 512]
        blocks = []
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            blocks += [Block(a, b, 1 if i == 0 else 2), Block(b, b, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Training:
    def __init__(self, batch: int, size: int) -> None:
        torch.manual_seed(1)
        self.model = ResNet18().to("ocl")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.images = torch.randn(batch, 3, size, size)
        self.labels = torch.randint(10, (batch,))

    def step(self) -> float:
        span = torch.ocl.profiler.range
        with span("forward"):
            loss = F.cross_entropy(self.model(self.images.to("ocl")), self.labels.to("ocl"))
        with span("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with span("optimizer"):
            self.optimizer.step()
        return loss.item()


def take(training: Training, steps: int, path: str) -> None:
    with torch.ocl.profiler.profile("interval", path=path):
        for _ in range(steps):
            training.step()


def _no_constants(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError(f"a member appears twice: {pairs}")
    return dict(pairs)


def load(path: str) -> list[dict]:
    with open(path, encoding="utf-8", errors="strict") as file:
        trace = json.load(file, parse_constant=_no_constants, object_pairs_hook=_no_repeats)
    if trace["otherData"]["lost"] != 0:
        raise ValueError(f"{trace['otherData']['lost']} records were lost")
    return trace["traceEvents"]


def check_schema(events: list[dict]) -> list[str]:
    wrong = []
    arrows = defaultdict(list)
    for e in events:
        if set(e) - {"ph"} != MEMBERS.get(e["ph"]):
            wrong.append(f"members of {e}")
        if e.get("ts", 0) < 0 or e.get("dur", 0) < 0:
            wrong.append(f"a time below 0: {e}")
        if e["ph"] in "sf":
            arrows[e["id"]].append(e)
    for pair in arrows.values():
        if [e["ph"] for e in pair] != ["s", "f"] or pair[0]["ts"] > pair[1]["ts"] + SLACK:
            wrong.append(f"arrow {pair}")
    calls = Counter(e["args"]["call"] for e in events if e["ph"] == "X" and e["pid"] == HOST)
    wrong += [f"call {call} appears {count} times" for call, count in calls.items() if count > 1]
    return wrong


def check_kernels(events: list[dict]) -> list[str]:
    operators = {e["args"]["call"]: e for e in events if e["ph"] == "X" and e["cat"] == "operator"}
    arrows = {(e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "f"}
    wrong = []
    for kernel in (e for e in events if e["ph"] == "X" and e["cat"] == "kernel"):
        call = operators.get(kernel["args"]["call"])
        if call is None or call["name"] != kernel["args"]["operator"]:
            wrong.append(f"kernel {kernel['name']} has no operator")
        elif not call["ts"] <= kernel["args"]["queued_us"] <= call["ts"] + call["dur"] + ROUNDING:
            wrong.append(f"kernel {kernel['name']} was enqueued outside its operator")
        if (kernel["pid"], kernel["tid"], kernel["ts"]) not in arrows:
            wrong.append(f"kernel {kernel['name']} has no arrow")
    return wrong


def streams(events: list[dict]) -> dict[tuple[int, int], list[dict]]:
    found = defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["pid"] > HOST:
            found[e["pid"], e["tid"]].append(e)
    return {key: sorted(work, key=lambda e: e["ts"]) for key, work in found.items()}


def busy(work: list[dict]) -> float:
    """The union of the slices, us."""
    total, end = 0.0, 0.0
    for e in work:
        total += max(0.0, e["ts"] + e["dur"] - max(end, e["ts"]))
        end = max(end, e["ts"] + e["dur"])
    return total


def check_streams(events: list[dict]) -> tuple[list[str], list[str]]:
    """(what is wrong, lines of figures)"""
    wrong, lines = [], []
    for (process, stream), work in streams(events).items():
        for a, b in zip(work, work[1:]):
            if a["ts"] + a["dur"] > b["ts"] + ROUNDING:
                wrong.append(f"{a['name']} and {b['name']} overlap on stream {stream}")
        kernels = [e for e in work if e["cat"] == "kernel"]
        total, time_busy = sum(e["dur"] for e in kernels), busy(work)
        span = work[-1]["ts"] + work[-1]["dur"] - work[0]["ts"]
        lines.append(
            f"ocl:{process - HOST - 1} stream {stream}: {len(kernels)} kernels {total / 1e3:.3f} "
            f"ms, busy "
            f"{time_busy / 1e3:.3f} ms ({total / time_busy:.2%} kernels), from first to last "
            f"{span / 1e3:.3f} ms"
        )
        if kernels and abs(total - time_busy) > 0.05 * time_busy:
            wrong.append(
                f"stream {stream}: kernels take {total} us, the stream is busy for {time_busy} us"
            )
    if not lines:
        wrong.append("no command ran")
    return wrong, lines


def check(path: str) -> tuple[list[str], list[str]]:
    events = load(path)
    wrong, lines = check_streams(events)
    return wrong + check_schema(events) + check_kernels(events), lines


def overhead(
    training: Training, path: str, mode: str = "interval,event", rounds: int = 5
) -> tuple[float, float]:
    """Medians in seconds of a step without and with the profiler, taken in turn."""
    times = ([], [])
    for _ in range(rounds):
        for profiled in (False, True):
            if profiled:
                torch.ocl.profiler.start(mode, path=path)
            training.step()  # streams change their queues with the first command
            begin = time.perf_counter()
            training.step()
            training.step()
            times[profiled].append((time.perf_counter() - begin) / 2)
            if profiled:
                torch.ocl.profiler.stop()
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--steps", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--out", help="where the trace goes; by default to a temporary file")
    p.add_argument("--overhead", action="store_true")
    options = p.parse_args()
    training = Training(options.batch, options.size)
    for _ in range(2):
        training.step()  # programs are built
    with tempfile.TemporaryDirectory() as folder:
        path = options.out or folder + "/trace.json"
        take(training, options.steps, path)
        wrong, lines = check(path)
        print(
            f"{torch.ocl.get_device_name(0)}: {options.steps} steps of ResNet-18, batch "
            f"{options.batch}"
        )
        print("\n".join(lines + [f"WRONG: {text}" for text in wrong[:20]]))
        if options.overhead:
            off, on = overhead(training, folder + "/overhead.json")
            print(
                f"a step: {off * 1e3:.1f} ms, with 'interval,event' {on * 1e3:.1f} ms, "
                f"{on / off - 1:+.1%}"
            )
    print("checks passed" if not wrong else f"{len(wrong)} checks failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
