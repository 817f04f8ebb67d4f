"""What torch.compile made of the graphs of ocl in this process."""

import dataclasses
import time


@dataclasses.dataclass
class PlanSummary:
    """The steps that run a graph, in place of generated Python."""

    steps: dict[str, int]
    """How many of each kind."""
    python: list[str]
    """Lines of Python for which there is no step: the plan calls them."""


@dataclasses.dataclass
class CompiledGraph:
    """One graph: a forward or a backward pass, or a part of one."""

    kernels: list[str] = dataclasses.field(default_factory=list)
    """Names of its generated kernels; none if the graph was found in Inductor's cache."""
    calls: dict[str, str] = dataclasses.field(default_factory=dict)
    """Operators that could not become kernels, and why."""
    eager: str | None = None
    """Why the whole graph is run operator by operator; None if it is compiled."""
    plan: PlanSummary | str | None = None
    """Its plan, or why it runs as generated Python; None if ``eager``."""
    seconds: float = 0
    """What its compilation took, without Dynamo's tracing."""


class Report:
    def __init__(self) -> None:
        self.graphs: list[CompiledGraph] = []
        self._started = 0.0
        self._is_open = False

    def begin(self) -> None:
        self.graphs.append(CompiledGraph())
        self._started = time.perf_counter()
        self._is_open = True

    def end(self, eager: str | None = None) -> None:
        self.graphs[-1].seconds = time.perf_counter() - self._started
        self.graphs[-1].eager = eager
        self._is_open = False

    def note_kernel(self, name: str) -> None:
        self.graphs[-1].kernels.append(name)

    def note_plan(self, plan: PlanSummary | str) -> None:
        """A graph that AOTAutograd's cache has is loaded without being compiled."""
        if self._is_open:
            self.graphs[-1].plan = plan

    def note_call(self, operator: str, why: str) -> None:
        self.graphs[-1].calls[operator] = why


report = Report()
