"""Operators as C++ sees them: the rows of src/base/operators.def and pointwise.def with their
parameters' types, default values and names."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "base"))
import schemas  # noqa: E402

KEYWORDS = {"default", "register", "new", "delete", "class", "template", "operator", "int", "float"}
# C++ parameter type of a schema type: (required, optional).
TYPES = {
    "Scalar": ("const Scalar&", "const std::optional<Scalar>&"),
    "int": ("int64_t", "std::optional<int64_t>"),
    "SymInt": ("int64_t", "std::optional<int64_t>"),
    "float": ("double", "std::optional<double>"),
    "bool": ("bool", "std::optional<bool>"),
    "str": ("std::string_view", "std::optional<std::string_view>"),
    "ScalarType": ("DType", "std::optional<DType>"),
    "Generator": ("const Generator&", "const std::optional<Generator>&"),
    "Tensor": ("const Tensor&", "const OptionalTensor&"),
    "Operand": ("const TensorOrScalar&", "const OptionalTensorOrScalar&"),
    "Tensor[]": ("const TensorList&", "const TensorList&"),
    "int[]": ("const IntList&", "const IntList&"),
    "bool[]": ("const BoolList&", "const BoolList&"),
}
# Whole numbers that stand for something, by the parameter's name: include/ocltensor/arguments.h.
ENUMS = {
    "reduction": ("Reduction", ("None", "Mean", "Sum")),
    "interpolation_mode": ("Interpolation", ("Bilinear", "Nearest", "Bicubic")),
    "padding_mode": ("Padding", ("Zeros", "Border", "Reflection")),
    "normalization": ("FftNorm", ("None", "ByRootN", "ByN")),
}


@dataclass
class Argument:
    name: str
    kind: str  # key of TYPES
    optional: bool
    length: int
    default: str | None
    tensors: bool = False  # declared as Tensor

    @property
    def cpp_type(self) -> str:
        if self.kind == "int" and self.name in ENUMS:
            return ENUMS[self.name][0]
        return TYPES[self.kind][self.optional]


@dataclass
class Operator:
    full_name: str
    name: str
    overload: str
    schema: str
    family: str
    flags: frozenset[str]
    inputs: list[Argument] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    cpp_name: str = ""
    library: str = ""  # the namespace, in C++ too; empty for ATen's operators

    @property
    def pointwise(self) -> bool:
        return self.family == "pointwise"

    @property
    def is_factory(self) -> bool:
        return not any(a.tensors or a.kind == "Tensor[]" for a in self.inputs)

    @property
    def takes_self(self) -> bool:
        """Its first argument is the tensor that the operator is of."""
        return bool(self.inputs) and self.inputs[0].tensors and self.inputs[0].name == "self"

    @property
    def is_method(self) -> bool:
        """As in PyTorch, what is internal, a gradient, or of a named group is a function alone."""
        grouped = self.name.startswith(("_", "special_", "linalg_", "upsample_", "native_"))
        return self.takes_self and not grouped and "_backward" not in self.name

    @property
    def works_in_place(self) -> bool:
        """Its result has the shape of `self`, and overwriting that is what people do."""
        drawn = "kRandom" in self.flags and self.name != "multinomial"
        written = "kStartsFromSelf" in self.flags and not self.name.startswith("_")
        return self.takes_self and (self.pointwise or drawn or written)

    def signature(self) -> list[str]:
        return [a.cpp_type for a in self.inputs]

    def required(self) -> int:
        return sum(a.default is None for a in self.inputs)


def cpp_default(text: str, name: str) -> str:
    if name in ENUMS:
        kind, values = ENUMS[name]
        return f"{kind}::{values[int(text)]}"
    if text == "None":
        return "std::nullopt"
    if text in ("True", "False"):
        return text.lower()
    if text.startswith("'"):
        return '"' + text[1:-1] + '"'
    if text.startswith("["):
        return "{" + text[1:-1] + "}"
    return text


def argument_of(given: schemas.Argument) -> Argument:
    base = "int" if given.is_list and given.base == "SymInt" else given.base
    kind = base + "[]" if given.is_list else base
    name = given.name + "_" if given.name in KEYWORDS else given.name
    default = None if given.default is None else cpp_default(given.default, name)
    return Argument(name, kind, given.optional, given.length, default, kind == "Tensor")


def operator_of(row: schemas.Row) -> Operator:
    schema = row.schema
    library, _, name = schema.name.rpartition("::")
    op = Operator(
        schema.full_name, name, schema.overload, schema.text, row.family, row.flags, library=library
    )
    op.inputs = [argument_of(a) for a in schema.inputs]
    op.outputs = [a.name for a in schema.outputs]
    operands = [mine for mine, a in zip(op.inputs, schema.inputs, strict=True) if row.is_operand(a)]
    if len(operands) > 1:
        for a in operands:
            a.kind = "Operand"
    add_none_defaults(op)
    drop_inner_defaults(op)
    return op


def add_none_defaults(op: Operator) -> None:
    """What may be absent need not be given, also where only another overload of ATen says so:
    sum(x), mean(x)."""
    for a in op.inputs:
        if a.optional and a.default is None:
            a.default = "std::nullopt"


def drop_inner_defaults(op: Operator) -> None:
    """Drops defaults before a parameter without one: C++ allows them at the end only."""
    last = max((i for i, a in enumerate(op.inputs) if a.default is None), default=-1)
    for a in op.inputs[:last]:
        a.default = None


def tell_apart(group: list[Operator]) -> None:
    """Where one overload takes a number, another's operand in that place must be a tensor: a number
    would fit both."""
    for op in group:
        for other in group:
            if len(op.inputs) != len(other.inputs):
                continue
            for mine, theirs in zip(op.inputs, other.inputs, strict=True):
                if mine.kind == "Operand" and theirs.kind == "Scalar":
                    mine.kind = "Tensor"


def name_overloads(ops: list[Operator]) -> None:
    """Gives every C++ signature one name. Of two overloads with one signature the one with the most
    tensors keeps the plain name. Where a call would fit two overloads, the later one loses its
    default arguments."""
    groups: dict[tuple[str, str], list[Operator]] = {}
    for op in ops:
        groups.setdefault((op.library, op.name), []).append(op)
    for (_, name), group in groups.items():
        tell_apart(group)
        order = (
            sorted(group, key=lambda o: -sum(a.tensors for a in o.inputs))
            if any(o.pointwise for o in group)
            else group
        )
        taken: list[Operator] = []
        for op in order:
            op.cpp_name = name
            if any(t.signature() == op.signature() for t in taken):
                op.cpp_name = name + "_" + (re.sub(r"_?out$", "", op.overload) or "Scalar")
                continue
            for other in taken:
                for n in range(len(op.inputs), op.required() - 1, -1):
                    fits = other.required() <= n <= len(other.inputs)
                    if fits and op.signature()[:n] == other.signature()[:n]:
                        for a in op.inputs[: n + 1]:
                            a.default = None
                        break
            taken.append(op)


def read(folder: Path) -> list[Operator]:
    """All operators that have functions in C++, in the tables' order, with their names there."""
    rows = schemas.read(folder, ("operators.def", "pointwise.def"))
    ops = [operator_of(row) for row in rows]
    name_overloads(ops)
    return ops
