"""launch_bench's medians: times of single launches, or the difference of two."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

from rows import Row


class LaunchSide:
    """`options`: plugin; the program lies in bin/ beside the plugin's lib/."""

    def __init__(self, options: Any) -> None:
        self.program = pathlib.Path(options.plugin).resolve().parent.parent / "bin" / "launch_bench"
        if not self.program.exists():
            raise RuntimeError(
                f"{self.program} was not built (CMake option OCLTENSOR_BUILD_BENCH, Google "
                f"Benchmark)"
            )
        self.names: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {
            "name": "launch_bench",
            "versions": {"POCL_DEVICES": os.environ.get("POCL_DEVICES", "basic")},
        }

    def supports(self, row: Row) -> bool:
        return row.only == "launch"

    def prepare(self, row: Row) -> dict[str, Any]:
        self.names = row.op.split(" - ")
        return {"once": self.sample(0), "digests": [], "memory": 0, "sets": 1}

    def sample(self, seconds: float) -> float:
        """Seconds; the second name's time is taken off."""
        choice = f"--benchmark_filter=^({'|'.join(self.names)})$"
        done = subprocess.run(
            [self.program, choice, "--benchmark_format=json", "--benchmark_min_time=0.1"],
            check=True,
            capture_output=True,
            text=True,
            env={"POCL_DEVICES": "basic", **os.environ},
        )
        times = {b["name"]: b["real_time"] * 1e-9 for b in json.loads(done.stdout)["benchmarks"]}
        return times[self.names[0]] - sum(times[name] for name in self.names[1:])

    def release(self) -> None:
        self.names = []
