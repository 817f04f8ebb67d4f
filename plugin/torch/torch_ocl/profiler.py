"""Traces of the host's calls and the device's work, for Perfetto or Chrome's ``about:tracing``.

    with torch.ocl.profiler.profile("interval", path="step.json"):
        train_step()

The file has a track for each thread (operators, program builds, ranges) and, for each device, one
for each stream (kernels, copies with their bytes and GB/s) on the host's clock, arrows from calls
to what they enqueued, and the memory in use. Open it at https://ui.perfetto.dev. While the profiler
is on, streams use queues that stamp every command: launches cost more, results do not change.
While it is off, nothing is measured, at no cost. ``torch.profiler.record_function``
ranges are on the trace, too.

``OCLTENSOR_TRACE_SIGNPOSTS`` traces a whole process, ``OCLTENSOR_LOG_PROFILE_INFO`` prints lines as
operators run and tables at the end; both can be set at run time
(``torch.backends.ocl.set_setting``). ``torch.profiler.profile`` with
``ProfilerActivity.PrivateUse1`` shows the same kernels and copies in PyTorch's own tables and
traces.

With ``OCLTENSOR_CAPTURE_ENABLED=1`` in the environment a block can also be captured, to be run
again elsewhere:

    with torch.ocl.profiler.opencl_capture("step.capture"):
        train_step()

The file holds every program, launch and argument, the contents of buffers before, and the results.
``ocltensor-replay FILE`` runs it again on any OpenCL device, without PyTorch and without the
model's code, and says whether the results are the same, and how long each launch takes;
``--kernel-dir`` takes edited kernels, ``--export`` writes a bug report.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from torch_ocl import _C

__all__ = [
    "is_capturing_opencl",
    "is_enabled",
    "is_opencl_capture_enabled",
    "opencl_capture",
    "print_statistics",
    "profile",
    "range",
    "range_pop",
    "range_push",
    "reset_statistics",
    "start",
    "statistics",
    "stop",
]


def start(
    mode: str = "interval",
    wait_until_completed: bool = False,
    path: str | os.PathLike | None = None,
) -> None:
    """Begins a trace of all threads and devices.

    Args:
        mode: "interval" (slices with a duration), "event" (points in time: a call's begin, a
            command's end), or "interval,event".
        wait_until_completed: whether to synchronise the stream after each operator, so that its
            slice on the host's track lasts until its work is done.
        path: the file to write; by default ``ocltensor_trace_<process>_<number>.json`` in the
            current folder.

    Raises:
        RuntimeError: for another mode, if the file cannot be written, or if the profiler is on
            already.
    """
    _C.profiler_start(mode, wait_until_completed, "" if path is None else os.fspath(path))


def stop() -> None:
    """Waits for all streams and writes the trace.

    Raises:
        RuntimeError: if the profiler is off, or the file could not be written to its end; also for
            failures of a device during the trace, after the file is written.
    """
    _C.profiler_stop()


def is_enabled() -> bool:
    """Whether a trace is being recorded."""
    return _C.profiler_is_enabled()


@contextlib.contextmanager
def profile(
    mode: str = "interval",
    wait_until_completed: bool = False,
    path: str | os.PathLike | None = None,
) -> Iterator[None]:
    """Traces a block by ``start`` and ``stop``; the trace is written even if the block raises."""
    start(mode, wait_until_completed, path)
    try:
        yield
    finally:
        stop()


def range_push(name: str) -> None:
    """Opens a named range on this thread's track; ranges nest."""
    _C.profiler_push_range(name)


def range_pop() -> None:
    """Closes the innermost range of this thread; RuntimeError if there is none."""
    _C.profiler_pop_range()


@contextlib.contextmanager
def range(name: str) -> Iterator[None]:  # noqa: A001  the name that torch.cuda.nvtx has
    """Opens a named range around a block."""
    range_push(name)
    try:
        yield
    finally:
        range_pop()


def is_opencl_capture_enabled() -> bool:
    """Whether ``opencl_capture`` can be used: ``OCLTENSOR_CAPTURE_ENABLED=1`` is set."""
    return _C.capture_is_enabled()


def is_capturing_opencl() -> bool:
    """Whether a capture is being recorded, by any thread."""
    return _C.is_capturing()


@contextlib.contextmanager
def opencl_capture(path: str | os.PathLike) -> Iterator[None]:
    """Captures to one file what all threads enqueue during a block, for ``ocltensor-replay``.

    Begins and ends with a synchronisation of all streams. Buffers are read before their first use
    in the block, and again at its end: the file takes about as much as the memory in use, results
    do not change. The file is written even if the block raises. Setting
    ``OCLTENSOR_CAPTURE_ENABLED`` makes every launch of the process a little more expensive,
    captured or not.

    Args:
        path: the file to write; an existing one is replaced.

    Raises:
        RuntimeError: if ``OCLTENSOR_CAPTURE_ENABLED=1`` was not set when the process began to use
            OpenCL, if a capture is on already, or if the file cannot be written; at the end, if
            recording failed in between (a full disk, a lost device): the file is then removed, and
            the block itself has run as without a capture.
    """
    _C.capture_start(os.fspath(path))
    try:
        yield
    finally:
        _C.capture_stop()


def statistics() -> dict[str, list[dict]]:
    """Sums over everything recorded since the process began or ``reset_statistics``; waits for the
    devices.

    Calls and commands are recorded during a trace, while ``OCLTENSOR_LOG_PROFILE_INFO`` is not 0,
    or under ``torch.profiler``.

    Returns:
        Lists of rows, longest total first, under ``"operators"``, ``"kernels"`` and ``"copies"``
        (by direction), whose times are the device's, and ``"fallbacks"``, ``"builds"``, ``"loads"``
        (programs from the disk cache) and ``"hits"`` (programs found in memory), whose times are
        the host's. A row has ``name``, ``count``, ``total_ms``, ``mean_ms``, ``max_ms``,
        ``host_ms`` (of the calls) and ``bytes`` (copied).
    """
    return _C.profiler_statistics()


def print_statistics() -> None:
    """Prints ``statistics`` as tables to standard error."""
    _C.profiler_print_statistics()


def reset_statistics() -> None:
    """Sets all sums of ``statistics`` to 0."""
    _C.profiler_reset_statistics()
