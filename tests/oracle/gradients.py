#!/usr/bin/env python3
"""Compares recorded gradients with PyTorch's: every derivative judged by one that shares nothing.

    gradients.py FILE [--only REGEX] [--verbose]

FILE comes from `gradient-record FILE`. Its records are those of replay.py, and instead of outputs
they have

    leaves        arguments with a gradient: {"argument", "position" in a list or -1,
                  "preparation": "", "symmetric" or "log_softmax", "gradient": a tensor}
    weights       by result: a tensor, or null for a result that takes no part
    result_form   "", or "products": of U, S and V^H, as signs of singular vectors are not unique

The gradients are those of the sum of weights times results. PyTorch computes the same sum on
float64 and complex128 copies of the arguments. Exit status: 0 all agree, 1 a mismatch.

Tolerance: TOLERANCE times (1 + the largest element of the gradient). In float64 a formula is a
chain of some hundred roundings of 1e-16 in either library, of numbers up to some hundred times
their result: 1e-12. In complex64 and float32 only the project rounds, to 1e-7: 1e-5 likewise.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from typing import Any

import torch
from replay import (
    DTYPES,
    SPECIAL,
    Record,
    Skip,
    argument,
    find,
    judge_all,
    tensor,
    widen,
    wrapped,
)

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "complex64": 1e-5}
# What PyTorch itself is off by, times (1 + the largest element), and why.
_TRIGAMMA = (1e-9, "has a trigamma of 10 digits")
KNOWN = {
    "digamma.out": _TRIGAMMA,
    "polygamma.out": _TRIGAMMA,
    "hardsigmoid.out": (1e-7, "divides by 6 in float32"),
}
SCATTERS = {"scatter.src_out", "scatter_add.out", "scatter_reduce.two_out"}


def functional(name: str) -> Any:
    """The overload that returns what `name`, a form with `out` arguments, would write."""
    base, _, overload = name.partition(".")
    packet: Any = getattr(torch.ops.aten, base, None)
    if packet is None or overload not in packet.overloads():
        return find(name)[0]
    arguments = getattr(packet, overload)._schema.arguments  # noqa: SLF001
    wanted = [(a.name, str(a.type)) for a in arguments if not a.is_out]
    for candidate in packet.overloads():
        arguments = getattr(packet, candidate)._schema.arguments  # noqa: SLF001
        if [(a.name, str(a.type)) for a in arguments] == wanted:
            return getattr(packet, candidate)
    raise Skip(f"no overload of {base} has the arguments of {overload}")


def call(name: str, args: list[Any]) -> list[torch.Tensor]:
    """All results of the operator, on the tape."""
    if name in SCATTERS:  # PyTorch has no gradient of a `src` that is larger than the index
        args[3] = args[3][tuple(slice(n) for n in args[2].shape)]
    if name == "_linalg_svd.U" and not args[2]:  # ... nor of this operator's values alone
        return [torch.empty(0), torch.linalg.svdvals(args[0])]
    if name in SPECIAL and name != "_linalg_svd.U":
        result = SPECIAL[name](*args)
    else:
        op = functional(name)
        positional, keywords = [], {}
        for a, value in zip(op._schema.arguments, args, strict=False):  # noqa: SLF001
            if str(a.type) == "Tensor" and isinstance(value, (bool, int, float, complex)):
                value = wrapped(value, args)
            if a.kwarg_only:
                keywords[a.name] = value
            else:
                positional.append(value)
        result = op(*positional, **keywords)
    return [result] if isinstance(result, torch.Tensor) else list(result)


def prepare(how: str, value: torch.Tensor) -> torch.Tensor:
    """What the record says was done to an argument."""
    if how == "symmetric":
        return (value + value.mT) / 2
    return value.log_softmax(-1) if how == "log_softmax" else value


def gradients(record: Record, blob: bytes) -> list[torch.Tensor]:
    """PyTorch's gradients of the leaves."""
    args = [widen(argument(a, blob)) for a in record["args"]]
    leaves = []
    for leaf in record["leaves"]:
        holder, at = args, leaf["argument"]
        if leaf["position"] >= 0:
            holder, at = args[at], leaf["position"]
        leaves.append(holder[at].requires_grad_())
        holder[at] = prepare(leaf["preparation"], leaves[-1])
    results = call(record["op"], args)
    if record["result_form"] == "products" and results[0].dim() >= 2:
        u, s, vh = results
        results = [(u * s.unsqueeze(-2) ** 2) @ vh, s]
    outputs, weights = [], []
    for result, j in zip(results, record["weights"], strict=False):
        if j is not None and result.numel():
            outputs.append(result)
            weights.append(tensor(j, blob).to(result.dtype))
    found = torch.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


def judge(record: Record, blob: bytes) -> str:
    """The first difference, or nothing."""
    try:
        theirs = gradients(record, blob)
    except (RuntimeError, NotImplementedError) as error:
        text = str(error).splitlines()[0]
        raise Skip(re.sub(r"\[.*?\]|\d+", "*", f"PyTorch: {text}")) from error
    for leaf, expected in zip(record["leaves"], theirs, strict=True):
        mine = tensor(leaf["gradient"], blob).to(expected.dtype)
        name = f"gradient of argument {leaf['argument']}"
        if mine.shape != expected.shape:
            return f"{name} has shape {list(mine.shape)}, PyTorch has {list(expected.shape)}"
        if not mine.numel():
            continue
        same = (mine == expected) | (mine.isnan() & expected.isnan())
        largest = (
            expected[expected.isfinite()].abs().max().item() if expected.isfinite().any() else 0
        )
        share = TOLERANCE[leaf["gradient"]["dtype"]] + KNOWN.get(record["op"], (0.0,))[0]
        off = torch.where(same, 0, (mine - expected).abs()).nan_to_num(torch.inf).ravel()
        if (worst := off.max().item()) > share * (1 + largest):
            i = int(off.argmax())
            return (
                f"{name}, element {i}: {mine.ravel()[i].item()!r}, PyTorch has"
                f" {expected.ravel()[i].item()!r}, off by {worst / (1 + largest):.1e}"
            )
    return ""


def main() -> int:
    """Judges a file and prints what does not agree, what was not judged, and totals."""
    parser = argparse.ArgumentParser(description="Compares gradients with PyTorch's on the CPU")
    parser.add_argument("file")
    parser.add_argument("--only", default="", help="regular expression for operator names")
    parser.add_argument("--verbose", action="store_true", help="print every mismatch")
    options = parser.parse_args()
    assert set(TOLERANCE) <= set(DTYPES)
    torch.set_num_threads(2)
    shown: Counter[str] = Counter()

    def show(record: Record, difference: str) -> None:
        name = record["op"]
        shown[name] += 1
        if options.verbose or shown[name] <= 2:
            print(f"MISMATCH {name} {record['dtype']} seed {record['seed']}: {difference}")

    table, reasons = judge_all(options.file, options.only, judge, show)
    for name, found in sorted(reasons.items()):
        for reason, count in found.items():
            print(f"not judged: {name}: {count} x {reason}")
    for name, (_, why) in KNOWN.items():
        if name in table:
            print(f"PyTorch is no judge of {name} to the last digits: it {why}")
    total = sum(table.values(), Counter())
    judged = sum(row["agrees"] + row["mismatch"] > 0 for row in table.values())
    print(
        f"{judged} of {len(table)} operators judged: {total['agrees']} calls agree,"
        f" {total['mismatch']} mismatch, {total['skipped']} not judged (torch {torch.__version__})"
    )
    return 1 if total["mismatch"] or not total["agrees"] else 0


if __name__ == "__main__":
    sys.exit(main())
