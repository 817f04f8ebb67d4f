"""What this process's calls of torch.distributed did, and where their time went."""

from typing import NamedTuple

from torch_ocl import _C

_PREFIX = "ocl:"


class Calls(NamedTuple):
    """All calls of a kind that have succeeded; times in seconds, of one call after another."""

    count: int
    bytes: int
    """The larger of what they read and of what they wrote on this rank."""
    queue: float
    """Behind other calls of the same group, or of the same peer."""
    peers: float
    """Until the rank before this one had come: the rank that waits least is the slowest."""
    device: float
    """Until the device had computed what is sent."""
    copies: float
    """To page-locked memory, on devices with memory of their own. Those back are enqueued."""
    engine: float
    """In the engine: on the wire, in sums, and waiting for ranks that came later."""
    waited: float
    """For which threads were held in ``Work.wait()``, as by every call that is not asynchronous."""


class Summary(NamedTuple):
    """``print`` shows it as a table."""

    calls: dict[str, Calls]
    """By kind, such as ``"all_reduce"``."""
    steps: int
    """Backward passes of DistributedDataParallel that were timed: the first ten of a model but for
    its first, and every hundredth."""
    exposed: float
    """For how many seconds of these the device had its gradients and waited for their sums."""

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.calls.values())

    def __str__(self) -> str:
        times = Calls._fields[2:]
        head = "".join(f"{name + ' s':>11}" for name in times)
        lines = [f"{'':<16}{'calls':>8}{'MB':>10}{head}"]
        for kind, row in self.calls.items():
            line = f"{kind:<16}{row.count:>8}{row.bytes / 1e6:>10.2f}"
            lines.append(line + "".join(f"{getattr(row, name):>11.3f}" for name in times))
        if self.steps:
            each = self.exposed / self.steps * 1e3
            lines.append(f"backward passes waited for sums: {each:.1f} ms ({self.steps} timed)")
        return "\n".join(lines)


def summary() -> Summary:
    """Counts and times of this process's calls since it began, or since ``reset_summary()``.

    >>> print(torch.ocl.distributed.summary())
    """
    found = _C.distributed_statistics()
    calls = {}
    for title, rows in found["calls"].items():
        count, size, waited = (sum(row[k] for row in rows) for k in (0, 1, 3))
        parts = [sum(of_part) for of_part in zip(*(row[2] for row in rows), strict=True)]
        calls[title.removeprefix(_PREFIX)] = Calls(count, size, *parts, waited)
    return Summary(calls, found["steps"], found["exposed"])


def reset_summary() -> None:
    """Begins a new count, as after warm-up steps.

    From the first one on the device's time is told apart from copies, by one more wait of the host.
    """
    _C.reset_distributed_statistics()
