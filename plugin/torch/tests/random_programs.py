"""Random programs for compilers: lines of Python drawn from a seed, what the CPU makes of them and
how far a result may be from that, and of a program that fails the smaller ones that fail, too.

Values are exact or rounded. Exact ones are small numbers that every type has, so any order of
operations gives the same bits, ties and NaN are frequent, and what jumps (comparisons, places of
the largest, indices) applies to them alone. Rounded ones may be off by ``slack`` units in the last
place of the largest number that led to them, for what a line does to an error is at most to
multiply it by a small number.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence

import torch
from program_lines import TABLES

SIZES = (1, 2, 3, 7, 16, 17, 20, 33, 64)
LARGEST = 1 << 13  # elements
MOST = 1e3  # of floats: 16-bit ones that eager rounds are not to overflow
SLACK = 64
EPS = {torch.float32: 2.0**-22, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
# Up to what floats count as exact: quarters of whole numbers have so many bits.
EXACT = {torch.float32: 2.0**20, torch.float16: 2.0**8, torch.bfloat16: 2.0**5}
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = (torch.float32, torch.float32, *EPS, *WHOLE[:2], *WHOLE, torch.bool)


@dataclasses.dataclass(frozen=True)
class Line:
    text: str
    result: str
    operands: tuple[str, ...]
    kind: str  # rounded, moves or exactly


@dataclasses.dataclass(frozen=True)
class Given:
    """An input: numbers by a seed, seen through a view."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    view: str  # of the name
    is_exact: bool
    seed: int

    def make(self, device: str = "cpu") -> torch.Tensor:
        """The view is made on the device, whose memory has the rest, too."""
        draw = torch.Generator().manual_seed(self.seed)
        if self.is_exact:
            x = torch.randint(-3, 4, self.shape, generator=draw).to(torch.float32)
            if self.dtype == torch.uint8:
                x = x.abs()
            if self.dtype.is_floating_point and self.seed % 4 == 0:
                strange = torch.randint(0, 24, self.shape, generator=draw)
                for at, value in enumerate((float("nan"), float("inf"), -float("inf"), -0.0)):
                    x = torch.where(strange == at, value, x)
        else:
            x = torch.randn(self.shape, generator=draw)
        base = x.to(self.dtype).to(device)
        return eval(self.view, {"torch": torch, self.name: base})

    def text(self) -> str:
        numbers = "exact" if self.is_exact else "normal"
        return (
            f"{self.name} = {numbers}({list(self.shape)}, {self.dtype}, {self.seed}): {self.view}"
        )


@dataclasses.dataclass
class Known:
    """Of a value: whether it is exact, else the last place and the size of what led to it."""

    is_exact: bool
    eps: float
    size: float


@dataclasses.dataclass(frozen=True)
class Program:
    seed: int
    given: tuple[Given, ...]
    lines: tuple[Line, ...]
    shown: tuple[str, ...]
    is_dynamic: bool

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}{', dynamic' * self.is_dynamic}",
            *(g.text() for g in self.given),
        ]
        lines += [line.text for line in self.lines]
        return "\n".join([*lines, f"return {', '.join(self.shown)}"])

    def function(self) -> Callable[..., tuple[torch.Tensor, ...]]:
        body = [line.text for line in self.lines] + [f"return {', '.join(self.shown)},"]
        names: dict[str, object] = {"torch": torch}
        text = f"def program({', '.join(g.name for g in self.given)}):\n    " + "\n    ".join(body)
        exec(compile(text, f"<program {self.seed}>", "exec"), names)
        return names["program"]  # type: ignore[return-value]

    def inputs(self, device: str = "cpu") -> list[torch.Tensor]:
        return [given.make(device) for given in self.given]

    def resized(self) -> Program:
        """With other numbers of elements along each axis, 0 and 1 left as they are."""
        given = tuple(
            dataclasses.replace(g, shape=tuple(n if n < 2 else n + 3 for n in g.shape))
            for g in self.given
        )
        return dataclasses.replace(self, given=given)


class Invalid(Exception):
    """Not a program, or one whose result is a matter of rounding."""


def _known(x: torch.Tensor, is_exact: bool, operands: Sequence[Known]) -> Known:
    eps = max((k.eps for k in operands), default=0.0)
    size = max((k.size for k in operands), default=1.0)
    if x.numel() > LARGEST or x.dtype in (torch.float64, torch.complex64):
        raise Invalid
    if not x.dtype.is_floating_point:
        if not is_exact or (x.numel() and x.long().abs().max() > 1 << 29):
            raise Invalid
        return Known(True, 0.0, 1.0)
    finite = x.float().nan_to_num(0, 0, 0)
    size = max(size, finite.abs().max().item() if x.numel() else 0.0)
    if size > MOST and not (is_exact and size <= EXACT[x.dtype]):
        raise Invalid
    fits = size <= EXACT[x.dtype] and bool((finite * 4 == (finite * 4).round()).all())
    return Known(is_exact and fits, max(eps, EPS[x.dtype]), size)


def run(program: Program) -> tuple[list[torch.Tensor], dict[str, Known]]:
    """The results on the CPU and the inputs as they are left, and what is known of all."""
    values = dict(zip((g.name for g in program.given), program.inputs(), strict=True))
    known = {g.name: _known(values[g.name], g.is_exact, ()) for g in program.given}
    for line in program.lines:
        _step(line, values, known)
    left = [g.name for g in program.given]
    return [values[name] for name in (*program.shown, *left)], known


def _overlaps_itself(x: torch.Tensor) -> bool:
    """Whether several elements have one place in memory: compilers refuse to change those."""
    reach = 0
    for stride, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _step(line: Line, values: dict[str, torch.Tensor], known: dict[str, Known]) -> None:
    operands = [known[name] for name in line.operands]
    is_exact = all(k.is_exact for k in operands)
    if line.kind == "exactly" and not is_exact:
        raise Invalid
    before = {n: values[n]._version for n in line.operands}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line.text, {"torch": torch}, values)
    except (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise Invalid from error
    if any(
        values[n]._version != version and _overlaps_itself(values[n])
        for n, version in before.items()
    ):
        raise Invalid
    changed = [n for n, x in values.items() if n in line.operands or n == line.result]
    for name in changed:
        known[name] = _known(values[name], is_exact and line.kind != "rounded", operands)
    _spread(values, known)


def _spread(values: dict[str, torch.Tensor], known: dict[str, Known]) -> None:
    """What shares memory was changed together."""
    for name, other in itertools.permutations(values, 2):
        if values[name].untyped_storage().data_ptr() != values[other].untyped_storage().data_ptr():
            continue
        a, b = known[name], known[other]
        if not b.is_exact:
            known[name] = Known(False, max(a.eps, b.eps), max(a.size, b.size))


def bound(known: Known) -> float:
    return 0.0 if known.is_exact else SLACK * known.eps * max(1.0, known.size)


# ---- Drawing
def _given(rng: random.Random, index: int, shape: list[int]) -> Given:
    shape = [n if rng.random() < 0.8 else 1 for n in shape]
    dtype = rng.choice(DTYPES)
    is_exact = not dtype.is_floating_point or rng.random() < 0.5
    name = f"x{index}"
    views = [name] * 5 + [f"{name}[..., ::2]", f"{name}[1:]", f"{name}[..., 2:]"]
    views += [f"{name}.transpose(0, -1)", f"{name}.transpose(0, -1)[1:]"]
    view = rng.choice(views) if shape else name
    if "transpose" in view:
        shape = [shape[-1], *shape[1:-1], shape[0]] if len(shape) > 1 else shape
    wider = list(shape)
    if "::2" in view:
        wider[-1] *= 2
    if "2:" in view.replace("::2", ""):
        wider[-1] += 2
    if "[1:]" in view:
        at = -1 if "transpose" in view else 0
        wider[at] += 1
    return Given(name, tuple(wider), dtype, view, is_exact, rng.randrange(1 << 20))


def _drawn_line(
    rng: random.Random,
    number: int,
    values: dict[str, torch.Tensor],
    known: dict[str, Known],
) -> Line:
    names = list(values)
    x = rng.choice(names[-2:] if rng.random() < 0.75 else names)
    kinds = (
        ("rounded", "moves", "exactly", "exactly") if known[x].is_exact else ("rounded", "moves")
    )
    kind = rng.choice(kinds)
    text = rng.choice(TABLES[kind][rng.choice(list(TABLES[kind]))])
    result = f"v{number}"
    rank = max(1, values[x].dim())
    chosen = {
        "r": result,
        "x": x,
        "y": rng.choice(names),
        "z": rng.choice(names),
        "a": rng.randrange(rank),
        "b": rng.randrange(rank),
        "t": str(rng.choice(DTYPES)).removeprefix("torch."),
    }
    used = set(re.findall(r"\{(\w)\}", text)) & {"x", "y", "z"}
    operands = tuple(dict.fromkeys(str(chosen[u]) for u in sorted(used)))
    return Line(text.format(**chosen), result, operands, kind)


def draw(seed: int) -> Program:
    rng = random.Random(seed)
    shape = [rng.choice(SIZES) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
    if rng.random() < 0.06:
        shape[rng.randrange(len(shape))] = 0
    while torch.Size(shape).numel() > LARGEST // 4:
        shape[shape.index(max(shape))] //= 4
    given = tuple(_given(rng, index, shape) for index in range(rng.randint(1, 3)))
    program = Program(seed, given, (), (), rng.random() < 0.3)
    values = dict(zip((g.name for g in given), program.inputs(), strict=True))
    known = {g.name: _known(values[g.name], g.is_exact, ()) for g in given}
    lines: list[Line] = []
    wanted = rng.randint(3, 9)
    for _ in range(60):
        if len(lines) == wanted:
            break
        line = _drawn_line(rng, len(lines), values, known)
        before = copy.deepcopy(values), dict(known)
        try:
            _step(line, values, known)
        except Invalid:
            values, known = before
            continue
        lines.append(line)
    shown = [line.result for line in lines if rng.random() < 0.3]
    shown = [*dict.fromkeys([*shown, lines[-1].result])] if lines else ["x0"]
    return dataclasses.replace(program, lines=tuple(lines), shown=tuple(shown))


# ---- Shrinking
def smaller(program: Program) -> Iterator[Program]:
    """Programs with fewer results, lines, or inputs, as far as the CPU runs them."""
    for name in program.shown:
        rest = tuple(n for n in program.shown if n != name)
        if rest:
            yield dataclasses.replace(program, shown=rest)
    for at in reversed(range(len(program.lines))):
        line = program.lines[at]
        for stand_in in line.operands:
            yield _without(program, at, stand_in)
    if program.is_dynamic:
        yield dataclasses.replace(program, is_dynamic=False)
    used = {name for line in program.lines for name in line.operands} | set(program.shown)
    given = tuple(g for g in program.given if g.name in used)
    if len(given) < len(program.given):
        yield dataclasses.replace(program, given=given)
    for at, g in enumerate(program.given):
        if g.view != g.name:
            plain = dataclasses.replace(g, view=g.name, shape=tuple(g.make().shape))
            yield dataclasses.replace(
                program, given=(*program.given[:at], plain, *program.given[at + 1 :])
            )


def _without(program: Program, at: int, stand_in: str) -> Program:
    """Without a line, whose result another value takes the place of."""
    gone = program.lines[at].result

    def of(name: str) -> str:
        return stand_in if name == gone else name

    lines = tuple(
        dataclasses.replace(
            line,
            text=re.sub(rf"\b{gone}\b", stand_in, line.text),
            operands=tuple(dict.fromkeys(map(of, line.operands))),
        )
        for line in (*program.lines[:at], *program.lines[at + 1 :])
    )
    shown = tuple(dict.fromkeys(map(of, program.shown)))
    return dataclasses.replace(program, lines=lines, shown=shown)


def smallest(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that fails and of which nothing can be left out."""
    while True:
        for candidate in smaller(program):
            try:
                run(candidate)
            except Invalid:
                continue
            if fails(candidate):
                program = candidate
                break
        else:
            return program
