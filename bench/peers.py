"""Contestants as the bench sees them: worker processes that are asked in turn, and what each kind
is started with."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
# What --peer takes: the kind of worker, and options for it.
KINDS = {
    "ocltensor": ["plugin"],
    "driver": ["driver"],
    "torch-cpu": ["torch", "--torch-device", "cpu"],
    "torch-cuda": ["torch", "--torch-device", "cuda"],
    "torch-ocl": ["torch", "--torch-device", "ocl"],
    "torch-cuda-flash": ["torch", "--torch-device", "cuda", "--sdp", "flash"],
    "torch-cuda-cudnn": ["torch", "--torch-device", "cuda", "--sdp", "cudnn"],
    "torch-cuda-defaults": ["torch", "--torch-device", "cuda", "--defaults"],
    "torch-cuda-compiled": ["torch", "--torch-device", "cuda", "--defaults", "--compiled"],
    "torch-cpu-compiled": ["torch", "--torch-device", "cpu", "--compiled"],
    "torch-ocl-compiled": ["torch", "--torch-device", "ocl", "--compiled"],
    "torch-ocl-mma": ["torch", "--torch-device", "ocl"],
    "torch-ocl-portable": ["torch", "--torch-device", "ocl"],
    "openblas": ["openblas"],
    "clblast": ["clblast"],
    "clblast-tuned": ["clblast"],
    "dlprimitives": ["dlprimitives"],
    "launch": ["launch"],
    "earlier": ["plugin"],
    "earlier-torch-ocl": ["torch", "--torch-device", "ocl"],
    "earlier-launch": ["launch"],
}
ENVIRONMENTS = {
    "torch-ocl-mma": {"OCLTENSOR_DISABLED_PROVIDERS": "nvidia_hopper"},
    "torch-ocl-portable": {"OCLTENSOR_DISABLED_PROVIDERS": "nvidia_hopper,nvidia_mma"},
}
# Who runs the rows of each of ours with the build that --earlier names.
EARLIER = {
    "ocltensor": "earlier",
    "torch-ocl": "earlier-torch-ocl",
    "launch": "earlier-launch",
}
CACHES = (
    "OCLTENSOR_CACHE_DIR",
    "POCL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "XDG_CACHE_HOME",
    "NEO_CACHE_DIR",
)
PATIENCE = 300  # seconds for one answer


class Refused(RuntimeError):
    """A contestant cannot be had, or cannot run a row."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """What every worker is started with."""

    plugin: str
    device: int = 0
    threads: int = 1
    scale: str = "cpu"
    settings: tuple[str, ...] = ()
    cache: int = 32 << 20
    earlier: str = ""  # the plugin of the contestants EARLIER
    clblast_tuned: str = ""  # folder with the results of CLBlast's tuners

    def plugin_of(self, name: str) -> str:
        return self.earlier if name in EARLIER.values() else self.plugin

    def arguments(self, name: str) -> list[str]:
        found = [
            "--plugin",
            self.plugin_of(name),
            "--device",
            str(self.device),
            "--threads",
            str(self.threads),
            "--scale",
            self.scale,
            "--cache",
            str(self.cache),
        ]
        if name == "clblast-tuned":
            found += ["--clblast-tuned", self.clblast_tuned]
        return found + [word for setting in self.settings for word in ("--setting", setting)]

    def environment(self, name: str) -> dict[str, str]:
        env = dict(
            os.environ,
            OMP_NUM_THREADS=str(self.threads),
            OPENBLAS_NUM_THREADS=str(self.threads),
            # 2^20 cycles: idle threads of one contestant must not spin into the next sample
            OPENBLAS_THREAD_TIMEOUT="20",
            PYTHONPATH=os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
            TORCH_DEVICE_BACKEND_AUTOLOAD="0",
            PYTHONUNBUFFERED="1",
            **ENVIRONMENTS.get(name, {}),
        )
        if "torch-ocl" in name:
            env["OCLTENSOR_PLUGIN_PATH"] = self.plugin_of(name)
            built = pathlib.Path(self.plugin_of(name)).resolve().parent.parent / "torch"
            if built.is_dir():
                env["PYTHONPATH"] += os.pathsep + str(built)
        return env

    def command(self, name: str) -> list[str]:
        return [sys.executable, str(HERE / "worker.py"), *KINDS[name], *self.arguments(name)]


class Contestant:
    """A worker process. Methods raise Refused with the worker's text; a worker that died is started
    again for the next row."""

    def __init__(self, name: str, setup: Setup) -> None:
        self.name, self.setup = name, setup
        self.process: subprocess.Popen | None = None
        self.title = name
        self.about: dict[str, Any] = {}
        try:
            self._start()
            self.about = self.ask("describe")
        except Refused:
            self.close()
            raise
        self.title = self.about["name"]

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self.setup.command(self.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.setup.environment(self.name),
        )
        self._read()

    def _read(self) -> Any:
        # Nothing is buffered in between: there is one answer to a request.
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            self.process.kill()
            self.close()
            raise Refused(f"{self.name} did not answer within {PATIENCE} s and was ended")
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"{self.name} ended with status {self.close()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def ask(self, what: str, **more: Any) -> Any:
        if self.process is None:
            self._start()
        try:
            print(json.dumps({"do": what, **more}), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # reading says how it ended
        return self._read()

    def prepare(self, row: str) -> dict[str, Any] | None:
        """None where the row is none of this contestant's."""
        answer = self.ask("prepare", row=row)
        return None if answer.get("skip") else answer

    def sample(self, seconds: float) -> float:
        return self.ask("sample", seconds=seconds)

    def cold(self, row: str) -> float:
        """Seconds of the row's first step in a fresh process with empty caches of kernels."""
        # Builders that the process started may still put programs into its caches: their end is not
        # waited for.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            caches = {name: f"{folder}/{name}" for name in CACHES}
            for path in caches.values():
                pathlib.Path(path).mkdir()
            done = subprocess.run(
                [*self.setup.command(self.name), "--cold", row],
                capture_output=True,
                text=True,
                check=False,
                env={**self.setup.environment(self.name), **caches},
            )
        if done.returncode:
            raise Refused(
                f"the first step of {row} on {self.name} failed: "
                f"{done.stderr.strip().splitlines()[-1:]}"
            )
        return json.loads(done.stdout)["ok"]

    def release(self) -> None:
        if self.process is not None:
            self.ask("release")

    def close(self) -> int:
        """Ends the process, if there is one; its exit status."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        return process.wait(60)
