"""Tuning: fits kernels to a device by measuring once; what was measured is kept on disk.

Of each class of shapes every algorithm is run with every configuration (sizes of tiles, numbers of
pieces) that suits the device, compared with the usual choice, and timed. What is clearly faster is
chosen from then on, by all processes of the user. ``ocltensor-tune`` does the same without PyTorch.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from torch_ocl import _C
from torch_ocl._line import Line
from torch_ocl.backends._providers import report_rows, time_of
from torch_ocl.backends._scope import Scope
from torch_ocl.device import DeviceLike, _index


class TunedClass(NamedTuple):
    """What has been found for a class of shapes; times in microseconds.

    A choice is an algorithm with its configuration: ``"matmul.packed/rows:64/panels:2"``.
    """

    device: int
    family: str
    shapes: str
    rule: str  # the usual choice
    best: str
    rule_time: float
    best_time: float
    tried: int  # choices
    wrong: int  # of these: results differed, or it failed
    is_complete: bool  # False: it was stopped; the next time the rest is measured

    @property
    def speedup(self) -> float:
        """The usual choice's time by the best one's."""
        return self.rule_time / self.best_time if self.rule_time and self.best_time else 1.0


class Tuning(NamedTuple):
    """The result of ``tune``."""

    classes: list[TunedClass]
    file: str  # that keeps the measurements; empty without a cache folder
    failures: dict[str, str]  # problems that could not be tuned, with the reasons
    seconds: float

    @property
    def speedup(self) -> float:
        """The geometric mean of all classes."""
        if not self.classes:
            return 1.0
        return math.exp(sum(math.log(c.speedup) for c in self.classes) / len(self.classes))


def tuning(*, quick: bool = False) -> Scope:
    """A context, or decorator, in which what runs is tuned: each class of shapes when it is met.

    That takes seconds for each. Give it real numbers: results that are all the same are not judged,
    and so not tuned. ``OCLTENSOR_TUNE=full`` does it for a whole process.

    Args:
        quick: a few configurations of each algorithm instead of all
    """
    return Scope(lambda: [("OCLTENSOR_TUNE", "quick" if quick else "full")])


def tune(
    function: Callable[..., Any] | None = None,
    *arguments: Any,
    device: DeviceLike = None,
    family: str | Sequence[str] = (),
    dtype: torch.dtype | Sequence[torch.dtype] = (),
    quick: bool = False,
    budget: float | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Fits kernels to a device by measuring, once; measures only what has not been measured yet.

    With a function: what ``function(*arguments)`` computes on ocl devices. It is called twice: to
    see which shapes there are, and to tune them; a training step therefore makes two steps. Give
    it real numbers, see ``tuning``. Without one: a table of products, convolutions and attention
    of common networks, which takes from minutes (``quick``) to hours.

    Ctrl-C and ``budget`` end it, and keep what has been measured; with a function, Ctrl-C waits for
    the class of shapes under way.

    Args:
        device: where the table is measured; None: the current device
        family: only these of the table ("matmul", "conv", ...)
        dtype: only these of the table
        quick: a few configurations of each algorithm, and a few problems of the table in float32
        budget: stop after so many seconds
        progress: whether to show a line on standard error; None: if that is a terminal

    >>> torch.ocl.tune(model, images).speedup
    1.07
    """
    begin = time.perf_counter()
    end = math.inf if budget is None else begin + budget
    index = _index(device)
    _C.run_action("start_tuning", "")
    with Line("tuning", progress) as line:
        if function is None:
            failures = _tune_table(index, _chosen(index, family, dtype, quick), quick, end, line)
        else:
            failures = {}
            _tune_calls(lambda: function(*arguments), quick, end, line)
    classes = [_class_of(row) for row in report_rows("tuned_classes")]
    file = _C.report(f"measurements_file {index}")
    return Tuning(classes, file, failures, time.perf_counter() - begin)


def export_measurements(path: str, device: DeviceLike = None) -> None:
    """Writes a device's measurements to a file, by which others of the same name can choose.

    ``OCLTENSOR_TUNED_FILES`` names such files. OSError if the file cannot be written.
    """
    with open(path, "w") as file:
        file.write(_C.report(f"measurements_export {_index(device)}"))


def _class_of(row: dict[str, Any]) -> TunedClass:
    return TunedClass(
        device=row["device"],
        family=row["family"],
        shapes=row["shapes"],
        rule=row["rule"],
        best=row["best"],
        rule_time=time_of(row["rule_time"]),
        best_time=time_of(row["best_time"]),
        tried=row["tried"],
        wrong=row["wrong"],
        is_complete=row["complete"],
    )


def _names(values: Any) -> list[str]:
    """Names of families or dtypes, of which there may be one."""
    several = [values] if isinstance(values, (str, torch.dtype)) else list(values)
    return [str(value).removeprefix("torch.") for value in several]


def _chosen(index: int, family: Any, dtype: Any, quick: bool) -> list[dict[str, Any]]:
    """The rows of the table that are asked for; ValueError if a name is in none."""
    rows = report_rows(f"tuning_problems {index}")
    families, dtypes = _names(family), _names(dtype)
    for names, column in ((families, "family"), (dtypes, "dtype")):
        for name in names:
            if all(row[column] != name for row in rows):
                raise ValueError(f"tune: there is no problem of {name!r}")
    return [
        row
        for row in rows
        if (not families or row["family"] in families)
        and (not dtypes or row["dtype"] in dtypes)
        and (not quick or (row["quick"] and (dtypes or row["dtype"] == "float32")))
    ]


def _tune_table(
    index: int, rows: list[dict[str, Any]], quick: bool, end: float, line: Line
) -> dict[str, str]:
    """Tunes rows one after the other; returns those that failed, with the reasons."""
    failures: dict[str, str] = {}
    effort = "quick" if quick else "full"
    begin = time.perf_counter()
    for done, row in enumerate(rows):
        name = f"{row['family']} {row['dtype']} {row['text']}"

        def work(number: int = row["number"], name: str = name) -> None:
            try:
                _C.run_action("tune_problem", f"{index} {number} {effort}")
            except (RuntimeError, NotImplementedError) as error:
                failures[name] = str(error)

        # In a thread of its own, so that Ctrl-C is seen at once.
        thread = threading.Thread(target=work)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.1)
                if time.perf_counter() > end:
                    _C.run_action("stop_tuning", "")
                left = (time.perf_counter() - begin) / done * (len(rows) - done) if done else 0
                remaining = f", {left:.0f} s left" if done else ""
                line.show(f"{done + 1}/{len(rows)}{remaining}: {name}{_best_so_far()}")
        except KeyboardInterrupt:
            _C.run_action("stop_tuning", "")
            thread.join()
            return failures
        if time.perf_counter() > end:
            break
    return failures


def _tune_calls(call: Callable[[], Any], quick: bool, end: float, line: Line) -> None:
    """Calls the function to see what there is, and again to tune it."""
    with Scope(lambda: [("OCLTENSOR_TUNE", "record")]):
        call()
    torch.ocl.synchronize()
    count = _progress()["untuned"]
    if count == 0:
        return
    with _watched(count, end, line), tuning(quick=quick):
        call()
        torch.ocl.synchronize()


@contextmanager
def _watched(count: int, end: float, line: Line) -> Iterator[None]:
    """Shows the progress meanwhile, and stops tuning when the time is over."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            if time.perf_counter() > end:
                _C.run_action("stop_tuning", "")
            row = _progress()
            name = f"{row['family']} {row['shapes']}{_best_so_far()}" if row["family"] else ""
            line.show(f"{row['classes'] + 1}/{count}: {name}")

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _progress() -> dict[str, Any]:
    return report_rows("tuning_progress")[0]


def _best_so_far() -> str:
    row = _progress()
    rule, best = time_of(row["rule_time"]), time_of(row["best_time"])
    return f", {row['index'] + 1}/{row['count']} best {rule / best:.2f}x" if best else ""
