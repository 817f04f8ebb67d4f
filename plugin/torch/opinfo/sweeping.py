"""What the sweeps of this folder share: their command lines, worker processes, and threads."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Callable


def parser(text: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def parser_of_entries(text: str | None) -> argparse.ArgumentParser:
    """Of sweeps over samples of op_db's entries."""
    p = parser(text)
    p.add_argument("--only", default="")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--samples", type=int, default=3)
    return p


def start_worker(script: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    """A process of the script that has said it is ready; `settings`: of its environment."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", script, *arguments],
        env=os.environ | {"OCLTENSOR_LOG_LEVEL": "error"} | settings,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise SystemExit("the device ocl cannot be used")
    return process


def in_threads(serve: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=serve) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
