"""What torch.compile made of the graphs of ocl in this process."""

import dataclasses
import time


@dataclasses.dataclass
class CompiledGraph:
    """One graph: a forward or a backward pass, or a part of one."""

    kernels: list[str] = dataclasses.field(default_factory=list)
    """Names of its generated kernels; none if the graph was found in Inductor's cache."""
    calls: dict[str, str] = dataclasses.field(default_factory=dict)
    """Operators that could not become kernels, and why."""
    eager: str | None = None
    """Why the whole graph is run operator by operator; None if it is compiled."""
    seconds: float = 0
    """What its compilation took, without Dynamo's tracing."""


class Report:
    def __init__(self) -> None:
        self.graphs: list[CompiledGraph] = []
        self._started = 0.0

    def begin(self) -> None:
        self.graphs.append(CompiledGraph())
        self._started = time.perf_counter()

    def end(self, eager: str | None = None) -> None:
        self.graphs[-1].seconds = time.perf_counter() - self._started
        self.graphs[-1].eager = eager

    def note_kernel(self, name: str) -> None:
        self.graphs[-1].kernels.append(name)

    def note_call(self, operator: str, why: str) -> None:
        self.graphs[-1].calls[operator] = why


report = Report()
