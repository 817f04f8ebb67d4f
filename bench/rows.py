"""Descriptors: one Row says an operator's sizes, arguments, results and costs; every contestant
works from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

BITS = {
    "bool": 8,
    "uint8": 8,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "complex64": 64,
}
TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 1e-5,
    "float64": 1e-12,
}  # of the largest value; integers: 0


@dataclasses.dataclass(eq=False)
class Tensor:
    """A tensor of a row, as input or result. One object used twice is one tensor.

    `draw` says what it holds: normal, positive, bool, or whole numbers below N: "index N" (any, as
    often), "index N sorted", "index N few K" (K different ones), "index N zipf" (by Zipf's law);
    "offsets N": ascending from 0 to N; "definite": symmetric matrices with eigenvalues from 1 on.
    `transposed`: the last two dimensions lie in memory the other way round; `shape` is what the
    operator sees. `channels_last`: the second dimension's elements are neighbours in memory, as in
    torch's memory format of that name.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    draw: str = "normal"
    transposed: bool = False
    channels_last: bool = False

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.count * BITS[self.dtype] // 8


@dataclasses.dataclass(frozen=True)
class Dtype:
    """An argument of type ScalarType."""

    name: str


@dataclasses.dataclass(frozen=True)
class Result:
    """An argument that is result `index` of the row's `before`."""

    index: int


def bound(a: Any, known: dict[int, Any], earlier: list, dtype: Callable[[str], Any]) -> Any:
    """A row's argument as a contestant has it: tensors by their ids, results of `before`, types."""
    if isinstance(a, Tensor):
        return known[id(a)]
    if isinstance(a, Result):
        return earlier[a.index]
    if isinstance(a, Dtype):
        return dtype(a.name)
    return [bound(x, known, earlier, dtype) for x in a] if isinstance(a, list) else a


@dataclasses.dataclass
class Row:
    """`check` lists the results that are compared. `before` runs once, to make arguments (a forward
    pass). `peer(torch, inputs)` gives the peer's function where it is not the operator itself;
    `inputs` are the row's tensors in order. `group` and `weight` (how often it occurs in its model)
    are what goals.py sums up."""

    family: str
    name: str
    op: str
    args: list[Any]
    outs: list[Tensor]
    flops: float = 0.0
    bytes: float = -1.0
    tolerance: float = -1.0
    check: tuple[int, ...] = (0,)
    before: Row | None = None
    peer: Callable[[Any, list[Any]], Callable[[], Any]] | None = None
    group: str = ""
    weight: float = 1.0
    # who else than the plugin runs it: "torch" for whole models and Python calls, "launch" for
    # launch_bench
    only: str = ""
    settings: dict[str, str] = dataclasses.field(
        default_factory=dict
    )  # of the plugin, for this row alone
    size: float = 0.0  # of growth rows: what the plot has on its x axis

    def __post_init__(self) -> None:
        if self.bytes < 0:
            self.bytes = float(sum(t.bytes for t in [*self.inputs(), *self.outs]))
        if self.tolerance < 0:
            self.tolerance = TOLERANCE.get(self.outs[0].dtype, 0.0) if self.outs else 0.0
        self.flops = float(self.flops)

    def inputs(self) -> list[Tensor]:
        """The tensors among the arguments, those of `before` first, each once."""
        found = {id(t): t for t in (self.before.inputs() if self.before else [])}
        found.update({id(t): t for t in _tensors(self.args)})
        return list(found.values())

    @property
    def dtype(self) -> str:
        tensors = [t for t in self.inputs() if t.dtype in TOLERANCE]
        return tensors[0].dtype if tensors else "float32"


def _tensors(args: list[Any]) -> Iterator[Tensor]:
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from _tensors(list(a))


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large rows are: those of a CPU take seconds on a GPU's share of time and the other way
    round."""

    gpu: bool
    full: bool = False  # also what takes long

    def pick(self, cpu: Any, gpu: Any) -> Any:
        return gpu if self.gpu else cpu
