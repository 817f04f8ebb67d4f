"""The goals as ratios of the peer's time to ours, over the rows that they are about: met, first
step met, or not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

Entry = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Goal:
    """`how` rows are put together: "mean" (geometric, of the ratios), "sum" (weighted, of the
    times), or "seconds" (no peer: the row's cold first step must be as short as the goal)."""

    text: str
    gpu: bool
    peer: str
    first: float
    final: float
    rows: Callable[[Entry], bool]
    how: str = "mean"


def _group(*prefixes: str, least: float = 0.0) -> Callable[[Entry], bool]:
    return lambda r: r["group"].startswith(prefixes) and r["bytes"] >= least


def _conv(model: str, direction: str, kind: str = "float32") -> Callable[[Entry], bool]:
    return lambda r: r["group"] == f"{model} {direction} {kind}"


DIRECTIONS = ("forward", "backward data", "backward weight")
CUDA, CPU, CUDNN = "torch-cuda", "torch-cpu", "torch-cuda-cudnn"
LARGE = 64e6
GOALS = [
    Goal(
        "pointwise, copy, reductions of 64 MB and more",
        True,
        CUDA,
        0.95,
        1.0,
        _group("bandwidth", "copy", "transcendental", "reduce", least=LARGE),
    ),
    Goal(
        "softmax, layer norm",
        True,
        CUDA,
        0.85,
        1.0,
        lambda r: r["name"].startswith(("softmax", "layer norm")),
    ),
    Goal(
        "small operator (256 elements), whole Python call",
        True,
        CUDA,
        1 / 1.6,
        1.0,
        _group("small"),
    ),
    Goal(
        "float32 matmul 4096",
        True,
        CUDA,
        0.95,
        1.0,
        lambda r: r["name"] == "4096x4096x4096 nn float32",
    ),
    Goal(
        "float32 matmul 4096, portable kernel",
        True,
        CUDA,
        0.95,
        1.0,
        lambda r: r["name"] == "4096x4096x4096 nn float32, portable kernel",
    ),
    Goal(
        "float32-accurate matmul on matrix units",
        True,
        CUDA,
        2.2,
        2.5,
        lambda r: r["name"] == "8192x8192x8192 nn float32",
    ),
    Goal(
        'float32 matmul on matrix units, precision "high"',
        True,
        CUDA,
        3.3,
        4.0,
        lambda r: r["name"].endswith('precision "high" (TF32)'),
    ),
    Goal(
        "float16 and bfloat16 matmul, all layouts, batched",
        True,
        CUDA,
        0.95,
        1.1,
        _group("matmul float16", "matmul bfloat16"),
    ),
    *(
        Goal(
            f"float32 convolutions of ResNet-50, {d}",
            True,
            CUDA,
            1.6,
            2.5,
            _conv("resnet50", d),
            "sum",
        )
        for d in DIRECTIONS
    ),
    *(
        Goal(
            f"float16 convolutions of ResNet-50 against channels_last, {d}",
            True,
            CUDA,
            0.7,
            1.0,
            _conv("resnet50", d, "float16 channels_last"),
            "sum",
        )
        for d in DIRECTIONS
    ),
    *(
        Goal(
            f"attention {d}, 16 bits",
            True,
            "torch-cuda-flash",
            first,
            first,
            _group(f"attention {d} float16", f"attention {d} bfloat16"),
        )
        for d, first in (("forward", 1.5), ("backward", 1.3))
    ),
    Goal(
        "attention with masks and dropout, 16 bits",
        True,
        CUDA,
        1.2,
        1.5,
        _group("masked attention forward bfloat16", "masked attention backward bfloat16"),
    ),
    *(
        Goal(
            f"attention {d}, 16 bits, against cuDNN",
            True,
            CUDNN,
            1.05,
            1.05,
            _group(f"attention {d} float16", f"attention {d} bfloat16"),
        )
        for d in ("forward", "backward")
    ),
    Goal(
        "training step of ResNet-50 and GPT-2",
        True,
        CUDA,
        0.6,
        1.0,
        lambda r: r["group"] == "model train" and r["name"].startswith(("resnet50", "gpt2")),
    ),
    Goal("float32 matmul of 256 and more", False, CPU, 0.8, 1.0, _group("matmul float32")),
    *(
        Goal(f"convolutions of {m}, {d}", False, CPU, 0.9, 1.3, _conv(m, d), "sum")
        for m in ("resnet18", "resnet50")
        for d in DIRECTIONS
    ),
    *(
        Goal(text, False, CPU, 1.0, 1.5, _group(*groups))
        for text, groups in (
            ("attention", ("attention forward float32", "attention backward float32")),
            ("softmax and norms", ("rows",)),
            ("pooling", ("pool",)),
            ("copies", ("copy",)),
            ("reductions", ("reduce",)),
        )
    ),
    Goal("transcendental pointwise", False, CPU, 0.75, 1.0, _group("transcendental")),
    *(
        Goal(
            f"models, {mode}",
            False,
            CPU,
            0.7,
            1.1,
            lambda r, mode=mode: (
                r["group"] == f"model {mode}" and r["name"].startswith(("resnet", "bert", "gpt2"))
            ),
        )
        for mode in ("eval", "train")
    ),
    Goal(
        "first ResNet-18 step, cold caches, seconds",
        False,
        "",
        10.0,
        3.0,
        lambda r: r["name"].startswith("resnet18 train"),
        "seconds",
    ),
    Goal(
        "plugin's own share of a launch, us",
        False,
        "",
        1.0,
        0.3,
        lambda r: r["name"] == "launch share",
        "us",
    ),
]


def judge(rows: list[Entry], gpu: bool) -> list[Entry]:
    """{goal, peer, value, first, final, state, rows, worst} of each goal that some row is about."""
    found = []
    for goal in GOALS:
        if goal.gpu != gpu:
            continue
        mine = [r for r in rows if "us" in r and goal.rows(r)]
        value, worst = _value(goal, mine)
        if value is None:
            continue
        less_is_better = goal.how in ("seconds", "us")
        reaches = (
            (lambda bound, v=value: v <= bound)
            if less_is_better
            else (lambda bound, v=value: v >= bound)
        )
        state = "met" if reaches(goal.final) else "first met" if reaches(goal.first) else "not met"
        found.append(
            {
                "goal": goal.text,
                "peer": goal.peer,
                "value": value,
                "first": goal.first,
                "final": goal.final,
                "state": state,
                "rows": len(mine),
                "worst": worst,
                "how": goal.how,
            }
        )
    return found


def unmeasured(rows: list[Entry], gpu: bool) -> list[Goal]:
    """Goals that no row of these is about, but for cold starts, which one driver has."""
    judged = {g["goal"] for g in judge(rows, gpu)}
    return [g for g in GOALS if g.gpu == gpu and g.how != "seconds" and g.text not in judged]


def _value(goal: Goal, rows: list[Entry]) -> tuple[float | None, str]:
    if goal.how == "seconds":
        seconds = [r["cold_s"]["torch-ocl"] for r in rows if r.get("cold_s", {}).get("torch-ocl")]
        return (max(seconds), "") if seconds else (None, "")
    if goal.how == "us":
        return (rows[0]["us"], "") if rows else (None, "")
    against = [(r, r["peers"][goal.peer]) for r in rows if "ratio" in r["peers"].get(goal.peer, {})]
    if not against:
        return None, ""
    row, peer = min(against, key=lambda pair: pair[1]["ratio"])
    worst = f"{row['name']} {peer['ratio']:.2f}"
    if goal.how == "sum":
        return sum(r["weight"] * p["us"] for r, p in against) / sum(
            r["weight"] * r["us"] for r, _ in against
        ), worst
    return math.exp(sum(math.log(p["ratio"]) for _, p in against) / len(against)), worst
