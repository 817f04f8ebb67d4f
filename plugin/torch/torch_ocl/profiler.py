"""Traces of what the host calls and what the device does, for Perfetto or Chrome's ``about:tracing``.

    with torch.ocl.profiler.profile("interval", path="step.json"):
        train_step()

The file has a track for each thread (operators, program builds, ranges) and, for each device, one for each stream (kernels,
copies with their bytes and GB/s) on the host's clock, arrows from calls to what they enqueued, and the memory in use. Open it
at https://ui.perfetto.dev. While the profiler is on, streams use queues that stamp every command: launches cost more, results
do not change. Nothing is measured, and nothing costs anything, while it is off.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from torch_ocl import _C

__all__ = ["is_enabled", "profile", "range", "range_pop", "range_push", "start", "stop"]


def start(mode: str = "interval", wait_until_completed: bool = False, path: str | os.PathLike | None = None) -> None:
    """Begins a trace of all threads and devices.

    Args:
        mode: "interval" (slices with a duration), "event" (points in time: a call's begin, a command's end), or
            "interval,event".
        wait_until_completed: synchronise the stream after each operator, so that its slice on the host's track lasts
            until its work is done.
        path: the file to write; by default ``ocltensor_trace_<process>_<number>.json`` in the current folder.

    Raises:
        RuntimeError: another mode, a file that cannot be written, or a profiler that is on already.
    """
    _C.profiler_start(mode, wait_until_completed, "" if path is None else os.fspath(path))


def stop() -> None:
    """Waits for all streams and writes the trace.

    Raises:
        RuntimeError: the profiler is off, or the file could not be written to its end.
    """
    _C.profiler_stop()


def is_enabled() -> bool:
    """Whether a trace is being taken."""
    return _C.profiler_is_enabled()


@contextlib.contextmanager
def profile(
    mode: str = "interval", wait_until_completed: bool = False, path: str | os.PathLike | None = None
) -> Iterator[None]:
    """``start`` and ``stop`` around a block; the trace is written also if the block raises."""
    start(mode, wait_until_completed, path)
    try:
        yield
    finally:
        stop()


def range_push(name: str) -> None:
    """Opens a range of this thread's track; ranges nest."""
    _C.profiler_push_range(name)


def range_pop() -> None:
    """Closes the innermost range of this thread; RuntimeError if there is none."""
    _C.profiler_pop_range()


@contextlib.contextmanager
def range(name: str) -> Iterator[None]:  # noqa: A001  the name that torch.cuda.nvtx has
    """A range around a block."""
    range_push(name)
    try:
        yield
    finally:
        range_pop()
