"""Results as text: a line per row while they are measured, tables of Markdown, goals, and
comparisons of two runs."""

from __future__ import annotations

import itertools
import math
from statistics import geometric_mean
from typing import Any

import goals
from peers import EARLIER

Entry = dict[str, Any]
WHOLE = ("models", "networks")  # families whose rows are networks


def rate(row: Entry, us: float | None = None) -> str:
    us = us or row["us"]
    if row["bytes"] + row["flops"] == 0:
        return ""
    if row["flops"] > 8 * row["bytes"]:
        return f"{row['flops'] / us * 1e-3:.0f} GFLOP/s"
    return f"{row['bytes'] / us * 1e-3:.1f} GB/s"


def duration(us: float) -> str:
    return f"{us:.1f} us" if us < 1e4 else f"{us / 1e3:.1f} ms" if us < 1e7 else f"{us / 1e6:.1f} s"


def spread(row: Entry) -> str:
    return f"±{(row['us_high'] - row['us_low']) / 2 / row['us']:.0%}"


def line(row: Entry) -> str:
    if "error" in row:
        return f"not run: {row['error']}"
    parts = [f"{duration(row['us']):>10} {spread(row):>5}"]
    for name, p in row["peers"].items():
        if "ratio" in p:
            parts.append(
                f"{name} {duration(p['us'])} x{p['ratio']:.2f} ({p['low']:.2f}-{p['high']:.2f})"
            )
        else:
            parts.append(f"{name}: {p['refused']}")
    parts.append(rate(row))
    if "share" in row:
        parts.append(f"{row['share']:.0%} of limit")
    if row.get("wrong"):
        parts.append(
            "WRONG "
            + ", ".join(
                f"{n} {p['difference']:.1e}" for n, p in row["peers"].items() if p.get("wrong")
            )
        )
    return "  ".join(parts)


def table(head: list[str], body: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(cells) + " |" for cells in body),
    ]


def rows_table(rows: list[Entry]) -> list[str]:
    names = list(dict.fromkeys(n for r in rows for n in r["peers"]))
    head = [
        "row",
        "ours",
        "rate",
        "of limit",
        *(f"{n}: time, ratio (low-high)" for n in names),
        "difference",
    ]
    body = []
    for r in rows:
        if "error" in r:
            body.append([r["name"], f"not run: {r['error']}", *[""] * (3 + len(names))])
            continue
        cells = [
            r["name"],
            f"{duration(r['us'])} {spread(r)}",
            rate(r),
            f"{r['share']:.0%}" if "share" in r else "",
        ]
        cells += [_peer_cell(r["peers"].get(n)) for n in names]
        apart = [p["difference"] for p in r["peers"].values() if "difference" in p]
        flag = " **WRONG**" if r.get("wrong") else ""
        body.append([*cells, (f"{max(apart):.1e}" if apart else "") + flag])
    return table(head, body)


def _peer_cell(peer: Entry | None) -> str:
    if not peer:
        return ""
    if "ratio" not in peer:
        return "refused"
    return f"{duration(peer['us'])}, **{peer['ratio']:.2f}** ({peer['low']:.2f}-{peer['high']:.2f})"


def sums_table(rows: list[Entry]) -> list[str]:
    """Weighted sums of the groups that are a model's layers."""
    groups = list(dict.fromkeys(r["group"] for r in rows if r["group"].startswith("resnet")))
    body = []
    for group in groups:
        mine = [r for r in rows if r["group"] == group and "us" in r]
        for name in dict.fromkeys(n for r in mine for n, p in r["peers"].items() if "ratio" in p):
            both = [(r, r["peers"][name]) for r in mine if "ratio" in r["peers"].get(name, {})]
            ours, theirs = (
                sum(r["weight"] * r["us"] for r, _ in both),
                sum(r["weight"] * p["us"] for r, p in both),
            )
            body.append(
                [
                    group,
                    f"{len(both)} of {len(mine)}",
                    duration(ours),
                    name,
                    duration(theirs),
                    f"**{theirs / ours:.2f}**",
                ]
            )
    return (
        table(["layers of", "rows", "ours", "peer", "theirs", "ratio of the weighted sums"], body)
        if body
        else []
    )


def means_table(rows: list[Entry]) -> list[str]:
    """Of whole networks: each peer's ratios put together."""
    body = []
    mine = [r for r in rows if r["family"] in WHOLE and "us" in r]
    for name in dict.fromkeys(n for r in mine for n in r["peers"]):
        ratios = {r["name"]: p["ratio"] for r in mine if "ratio" in (p := r["peers"].get(name, {}))}
        if not ratios:
            continue
        least = min(ratios, key=ratios.__getitem__)
        mean = geometric_mean(ratios.values())
        body.append(
            [name, f"{len(ratios)} of {len(mine)}", f"{mean:.2f}", f"{ratios[least]:.2f}, {least}"]
        )
    return table(["peer", "rows", "geometric mean of ratios", "least"], body) if body else []


def models_table(rows: list[Entry]) -> list[str]:
    """Launches, memory and cold first steps. Of a CPU peer the memory is that of its whole
    process."""
    body = []
    for r in rows:
        for name, m in r.get("metrics", {}).items():
            cold = r.get("cold_s", {}).get(name)
            body.append(
                [
                    r["name"],
                    name,
                    str(m.get("launches", "")),
                    f"{m['peak_bytes'] / 1e6:.0f} MB{' (process)' if 'peak_what' in m else ''}"
                    if "peak_bytes" in m
                    else "",
                    f"{cold:.2f} s" if cold else "",
                ]
            )
    return (
        table(["model", "on", "launches per call", "peak memory", "first step, cold"], body)
        if body
        else []
    )


def cliffs(rows: list[Entry], bound: float = 2.0) -> list[Entry]:
    """{group, name, factor} of growth rows that take more than `bound` times what the next smaller
    one promises by its work, beyond the spread of both."""
    found = []
    for group in dict.fromkeys(r["group"] for r in rows if r["family"] == "growth"):
        mine = sorted(
            (r for r in rows if r["group"] == group and "us" in r), key=lambda r: r["size"]
        )
        for small, large in itertools.pairwise(mine):
            work = max(large["flops"] / small["flops"], large["bytes"] / small["bytes"], 1.0)
            factor = large["us_low"] / small["us_high"] / work
            if factor > bound:
                found.append({"group": group, "name": large["name"], "factor": factor})
    return found


def growth_table(rows: list[Entry]) -> list[str]:
    """Of each group: the cliffs, and how the memory beside inputs and outputs grows (the power of
    the size)."""
    body = []
    steep = cliffs(rows)
    for group in dict.fromkeys(r["group"] for r in rows if r["family"] == "growth"):
        mine = sorted(
            (r for r in rows if r["group"] == group and "us" in r), key=lambda r: r["size"]
        )
        if len(mine) < 2:
            continue
        cells = [f"{c['name']} x{c['factor']:.1f}" for c in steep if c["group"] == group]
        a, b = mine[-2], mine[-1]
        power = (
            f"size^{math.log(b['scratch'] / a['scratch']) / math.log(b['size'] / a['size']):.1f}"
            if a["scratch"] > 0 and b["scratch"] > 0
            else "none"
        )
        body.append(
            [
                group.removeprefix("growth "),
                f"{mine[0]['size']:.0f} to {b['size']:.0f}",
                ", ".join(cells) or "none",
                f"{b['memory'] / 1e6:.1f} MB",
                f"{b['scratch'] / 1e6:.1f} MB",
                power,
            ]
        )
    return (
        table(
            [
                "group",
                "sizes",
                "cliffs (more than twice what the work promises)",
                "tensors of the largest",
                "memory beside them",
                "which grows as",
            ],
            body,
        )
        if body
        else []
    )


def goals_table(rows: list[Entry], gpu: bool) -> list[str]:
    body = []
    for g in goals.judge(rows, gpu):
        body.append(
            [
                g["goal"],
                g["peer"],
                f"{g['first']:.2f} / {g['final']:.2f}",
                f"{g['value']:.2f}",
                g["state"],
                str(g["rows"]),
                g["worst"],
            ]
        )
    if body:
        body += [
            [g.text, g.peer, f"{g.first:.2f} / {g.final:.2f}", "", "not measured", "0", ""]
            for g in goals.unmeasured(rows, gpu)
        ]
    return (
        table(["goal", "peer", "first / final", "reached", "state", "rows", "worst"], body)
        if body
        else []
    )


def goals_text(rows: list[Entry], gpu: bool) -> list[str]:
    return [
        f"{g['state']:>9}  {g['value']:6.2f} (goal {g['first']:.2f} / {g['final']:.2f})  "
        f"{g['goal']}"
        + (f" against {g['peer']}" if g["peer"] else "")
        + (f"; worst {g['worst']}" if g["rows"] > 1 else "")
        for g in goals.judge(rows, gpu)
    ]


def against_earlier(rows: list[Entry], bound: float = 0.9) -> tuple[list[str], int]:
    """Lines, and how many rows are slower than `bound` times the earlier build beyond the spread of
    paired samples; none without an earlier build."""
    by_family: dict[str, list[float]] = {}
    lines, worse = [], 0
    for row in rows:
        for name, peer in row["peers"].items():
            if name not in EARLIER.values() or "ratio" not in peer:
                continue
            by_family.setdefault(row["family"], []).append(peer["ratio"])
            slower = peer["ratio"] < bound and peer["high"] < 1.0
            faster = peer["ratio"] > 1 / bound and peer["low"] > 1.0
            worse += slower
            if slower or faster:
                lines.append(
                    f"{row['name']:64} {duration(peer['us'])} -> {duration(row['us'])}  "
                    f"x{peer['ratio']:.2f} ({peer['low']:.2f}-{peer['high']:.2f})  "
                    f"{'SLOWER' if slower else 'faster'}"
                )
    lines += [
        f"{family:12} {len(ratios):4} rows beside the earlier build, geometric mean "
        f"x{geometric_mean(ratios):.3f}"
        for family, ratios in by_family.items()
    ]
    if by_family:
        every = [ratio for ratios in by_family.values() for ratio in ratios]
        lines.append(
            f"{len(every)} rows, geometric mean x{geometric_mean(every):.3f}, {worse} slower than "
            f"{bound:.2f} beyond the spread"
        )
    return lines, worse


def compare(old: list[Entry], new: list[Entry], bound: float = 0.9) -> tuple[list[str], int]:
    """Lines, and how many rows became slower than `bound` beyond the spread. Where both runs have
    the same peer, the ratio to it is compared, as it cancels what else the machine does."""
    before = {r["name"]: r for r in old if "us" in r}
    lines, ratios, worse = [], [], 0
    for r in new:
        o = before.get(r["name"])
        if o is None or "us" not in r:
            continue
        plain = o["us"] / r["us"]
        peer = next(
            (n for n, p in r["peers"].items() if "ratio" in p and "ratio" in o["peers"].get(n, {})),
            None,
        )
        paired = r["peers"][peer]["ratio"] / o["peers"][peer]["ratio"] if peer else plain
        ratios.append(paired)
        best = (
            r["peers"][peer]["high"] / o["peers"][peer]["low"]
            if peer
            else o["us_high"] / r["us_low"]
        )
        slower = paired < bound and best < 1.0
        worse += slower
        mark = "SLOWER" if slower else "faster" if paired > 1 / bound else ""
        lines.append(
            f"{r['name']:64} x{paired:.2f}  plain x{plain:.2f}  {duration(o['us'])} -> "
            f"{duration(r['us'])}  {mark}"
        )
    if ratios:
        lines.append(
            f"{len(ratios)} rows, geometric mean x{geometric_mean(ratios):.3f}, {worse} slower "
            f"than {bound:.2f} beyond the spread"
        )
    return lines, worse
