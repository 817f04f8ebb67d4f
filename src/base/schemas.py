"""The operator tables and their schemas, read: the one reader, of which all generators are users.

A schema is ATen's text, "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) ->
Tensor(a!)"; its rows are those of operators.def, multi_tensor.def and pointwise.def.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

TABLES = ("operators.def", "multi_tensor.def", "pointwise.def")  # in the order of operators()
# Numbers of pointwise operators that are operands like tensors, and take part in type promotion;
# the others (alpha, negative_slope) are parameters of the formula.
OPERAND_SCALARS = {"other", "self", "exponent", "min", "max"}

ROW = re.compile(r"OCLTENSOR_(OPERATOR|POINTWISE)\(")
TYPE = re.compile(r"(?P<base>\w+)(?:\(\w+(?P<written>!?)\))?(?P<of_optional>\?)?"
                  r"(?:\[(?P<length>\d*)\](?P<optional>\?)?)?")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Argument:
    name: str
    base: str  # "Tensor", "SymInt", ...; of a list the type of its entries
    is_list: bool = False
    optional: bool = False  # "Tensor?", or "int[]?"
    of_optional: bool = False  # "Tensor?[]"
    length: int = 0  # "int[2]": one int repeats; 0: none
    default: str | None = None  # as written; None: required
    keyword_only: bool = False
    written: bool = False  # "Tensor(a!)": an output, or an input that changes in place


@dataclasses.dataclass(frozen=True)
class Schema:
    text: str
    full_name: str  # "torchvision::nms.out"
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]  # written, and given by name alone

    @property
    def name(self) -> str:
        """With the library's namespace, without the overload."""
        return self.full_name.partition(".")[0]

    @property
    def overload(self) -> str:
        return self.full_name.partition(".")[2]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table."""

    schema: Schema
    family: str
    flags: frozenset[str]  # "kRandom"

    @property
    def pointwise(self) -> bool:
        return self.family == "pointwise"

    def is_operand(self, argument: Argument) -> bool:
        """Whether an input of a pointwise operator takes part in broadcasting and promotion."""
        if not self.pointwise or argument.is_list:
            return False
        number = argument.base == "Scalar" and argument.name in OPERAND_SCALARS
        return argument.base == "Tensor" or number


def split(text: str) -> list[str]:
    """The parts between the commas that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def argument(text: str, keyword_only: bool) -> Argument:
    """ValueError if the text is no argument."""
    declared, _, default = text.partition("=")
    kind, _, name = declared.rpartition(" ")
    found = TYPE.fullmatch(kind.strip())
    if found is None:
        raise ValueError(f"'{text}' is not an argument")
    is_list = found["length"] is not None
    return Argument(
        name,
        found["base"],
        is_list,
        bool(found["optional"] if is_list else found["of_optional"]),
        bool(is_list and found["of_optional"]),
        int(found["length"] or 0),
        default if "=" in text else None,
        keyword_only,
        bool(found["written"]),
    )


def parse(text: str) -> Schema:
    """ValueError if the text is no schema."""
    found = re.fullmatch(r"((?:\w+::)?\w+(?:\.\w+)?)\((.*)\) -> .+", text)
    if found is None:
        raise ValueError(f"'{text}' is not an operator's schema")
    inputs, outputs, keyword_only = [], [], False
    for part in split(found[2]):
        if part == "*":
            keyword_only = True
            continue
        one = argument(part, keyword_only)
        (outputs if keyword_only and one.written else inputs).append(one)
    return Schema(text, found[1], tuple(inputs), tuple(outputs))


def rows_of(text: str) -> list[Row]:
    """The rows of a table's text."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'"\s*\n\s*"', "", text)  # a literal in pieces
    found = []
    for start in ROW.finditer(text):
        head, schema, rest = text[start.end() :].split('"', 2)
        family = "pointwise" if start[1] == "POINTWISE" else head.split(",")[0].strip()
        flags = re.findall(r"\bk[A-Z]\w*", head + rest.partition(")")[0])
        found.append(Row(parse(schema), family, frozenset(flags)))
    return found


def read(folder: pathlib.Path, tables: tuple[str, ...] = TABLES) -> list[Row]:
    """The rows of the tables in a folder (src/base), in their order."""
    return [row for table in tables for row in rows_of((folder / table).read_text())]
