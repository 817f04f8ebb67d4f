"""How much of a training step the device is busy, from the plugin's own trace, and with what.

usage: busy.py [--device ocl] [--batch 32] [--words 1024] [--steps 3] [--top 12] [MODEL...]
(default: resnet50 gpt2)

For each model: steps without the profiler are timed, then steps with it are traced. `busy` is the
union of the device's slices (kernels and transfers) over the time from the first to the last of
them; `of a step` is the same busy time per step over the time of a step without the profiler, which
the profiler's own work cannot make look better or worse.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable

import models
import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed

PIXELS = 224  # a side of an image
HOST = 1  # the process of the trace that holds the host's threads


def timed(body: models.Body, steps: int) -> tuple[float, float]:
    """Seconds of a step, and of what the host does for it (more than it needs, where it is far
    ahead and must wait)."""
    torch.ocl.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        body()
    left = time.perf_counter()
    torch.ocl.synchronize()
    return (time.perf_counter() - begin) / steps, (left - begin) / steps


def trace(body: models.Body, steps: int) -> tuple[list[dict], list[dict]]:
    """What ran on the device, in the order of time, and the host's calls of operators."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        with torch.ocl.profiler.profile("interval", path=str(path)):
            for _ in range(steps):
                body()
            torch.ocl.synchronize()
        written = json.loads(path.read_text())
    if written["otherData"]["lost"]:
        raise RuntimeError(f"{written['otherData']['lost']} records were lost: take fewer steps")
    slices = [e for e in written["traceEvents"] if e["ph"] == "X"]
    device = sorted((e for e in slices if e["pid"] > HOST), key=lambda e: e["ts"])
    return device, [e for e in slices if e["pid"] == HOST and e["cat"] == "operator"]


def union(slices: list[dict]) -> float:
    """Microseconds in which at least one of them ran."""
    total, end = 0.0, 0.0
    for e in slices:
        total += max(0.0, e["ts"] + e["dur"] - max(end, e["ts"]))
        end = max(end, e["ts"] + e["dur"])
    return total


def report(name: str, batch: int, words: int, steps: int, top: int, device: torch.device) -> None:
    size = words if models.NETWORKS[name][1].startswith("words") else PIXELS
    body = models.Job(name, "train", batch, size).start(device)
    for _ in range(4):
        body()
    free, host = timed(body, steps)
    slices, calls = trace(body, steps)
    working, span = union(slices), max(e["ts"] + e["dur"] for e in slices) - slices[0]["ts"]
    print(
        f"{name} training step, batch {batch} of {size}, {torch.ocl.get_device_name(device)}: "
        f"{len(slices) / steps:.0f} commands a step; busy "
        f"{working / span:.1%} of {span / steps / 1e3:.2f} ms, "
        f"{working / steps / 1e6 / free:.1%} of a step of {free * 1e3:.2f} ms, "
        f"which the host has enqueued in {host * 1e3:.2f} ms"
    )
    table(
        "device",
        slices,
        lambda e: f"{e['name']} ({e['args'].get('operator', e['cat'])})",
        steps,
        top,
    )
    table("host, with the profiler", calls, lambda e: e["name"], steps, top)


def table(
    title: str, slices: list[dict], name_of: Callable[[dict], str], steps: int, top: int
) -> None:
    spent: dict[str, list[float]] = collections.defaultdict(list)
    for e in slices:
        spent[name_of(e)].append(e["dur"])
    total = sum(sum(times) for times in spent.values())
    print(f"  {title}: {total / steps / 1e3:.2f} ms a step")
    for name, times in sorted(spent.items(), key=lambda item: -sum(item[1]))[:top]:
        print(
            f"  {sum(times) / total:6.1%} {sum(times) / steps / 1e3:8.3f} ms "
            f"{len(times) / steps:6.0f} x {name}"
        )


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("models", nargs="*", default=["resnet50", "gpt2"])
    p.add_argument("--device", default="ocl")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--words", type=int, default=1024, help="of a sequence, for language models")
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--top", type=int, default=12)
    options = p.parse_args()
    for name in options.models:
        report(
            name,
            options.batch,
            options.words,
            options.steps,
            options.top,
            torch.device(options.device),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
