"""One row measured: results compared first, then samples of all contestants in turn; and what is
known of it afterwards."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import data
import report
from peers import Refused
from rows import Row

# seconds after a sample: threads of OpenMP and BLAS libraries spin for a while before they sleep
PAUSE = 0.004
SHORT, LONG = 0.25, 2.0  # seconds of one call from which fewer samples are taken


def measure(
    row: Row, ours: Any, peers: list[Any], samples: int, seconds: float, cold: bool = False
) -> dict[str, Any]:
    """The row's entry of the results; "error" in it says why it was not run. `cold`: of models also
    the first step (a CPU peer compiles nothing)."""
    result: dict[str, Any] = {
        "name": row.name,
        "family": row.family,
        "group": row.group,
        "weight": row.weight,
        "dtype": row.dtype,
        "flops": row.flops,
        "bytes": row.bytes,
        "size": row.size,
        "peers": {},
    }
    begin = time.perf_counter()
    try:
        mine = ours.prepare(row.name)
        if mine is None:
            raise Refused(f"{ours.name} has no such row")
        others = _others(row, peers, mine, result)
        count = (
            samples if mine["once"] < SHORT else max(3, samples // 2) if mine["once"] < LONG else 2
        )
        times: dict[str, list[float]] = {c.name: [] for c in [ours, *others]}
        for _ in range(count):
            for contestant in [ours, *others]:
                times[contestant.name].append(contestant.sample(seconds) * 1e6)
                time.sleep(PAUSE)
        _summarise(result, times, ours.name)
        result.update(
            {"sets": mine["sets"], "scratch": mine.get("scratch", 0), "memory": mine["memory"]}
        )
        if row.family in report.WHOLE:
            _add_metrics(result, [ours, *others], cold)
    except Refused as e:
        result["error"] = str(e)
    for contestant in [ours, *peers]:
        try:
            contestant.release()
        except Refused:
            pass
    result["took"] = round(time.perf_counter() - begin, 2)
    return result


def _add_metrics(result: dict[str, Any], contestants: list[Any], cold: bool) -> None:
    """What cannot be had of a contestant is told; the row's times stay."""
    result["metrics"], result["cold_s"] = {}, {}
    for c in contestants:
        try:
            result["metrics"][c.name] = c.ask("metrics", row=result["name"])
            if cold and c.name != "torch-cpu":
                result["cold_s"][c.name] = c.cold(result["name"])
        except Refused as e:
            result["metrics"].setdefault(c.name, {})["refused"] = str(e)
            print(f"{result['name']}, {c.name}: {e}", file=sys.stderr)


def _others(row: Row, peers: list[Any], mine: dict[str, Any], result: dict[str, Any]) -> list[Any]:
    """The peers that run the row; their results are compared with ours."""
    taking_part = []
    for peer in peers:
        try:
            theirs = peer.prepare(row.name)
        except Refused as e:
            result["peers"][peer.name] = {"refused": str(e)}
            continue
        if theirs is None:
            continue
        apart = data.difference(mine["digests"], theirs["digests"])
        result["peers"][peer.name] = {"difference": apart, "wrong": not apart <= row.tolerance}
        result["wrong"] = result.get("wrong", False) or not apart <= row.tolerance
        taking_part.append(peer)
    return taking_part


def _summarise(result: dict[str, Any], times: dict[str, list[float]], ours: str) -> None:
    mine = times.pop(ours)
    result.update(_spread("us", mine))
    for name, theirs in times.items():
        ratios = sorted(t / o for o, t in zip(mine, theirs, strict=True))
        middle = statistics.median(theirs)
        result["peers"][name].update(
            {
                **_spread("us", theirs),
                "ratio": middle / result["us"],
                "low": ratios[0],
                "high": ratios[-1],
            }
        )


def _spread(key: str, values: list[float]) -> dict[str, float]:
    return {key: statistics.median(values), f"{key}_low": min(values), f"{key}_high": max(values)}


def add_shares(
    rows: list[dict[str, Any]],
    limits: dict[str, float],
    gpu: bool,
    known: list[dict[str, Any]] | None = None,
) -> None:
    """Gives each row the time that the machine's measured limits allow, and the share of it that is
    reached.

    16-bit types on a GPU have matrix units, which no portable kernel reaches: their limit is the
    fastest matrix product of that type among `known` rows (default: these), of either side."""
    if not limits:
        return
    for row in rows:
        if "us" not in row or row["bytes"] + row["flops"] == 0:
            continue
        peak = _peak(row["dtype"], known or rows, limits, gpu)
        limit = max(
            row["bytes"] / limits["copy_gbytes"] * 1e-3, row["flops"] / peak * 1e-3 if peak else 0.0
        )
        row["limit_us"], row["share"] = limit, limit / row["us"]


def _peak(dtype: str, rows: list[dict[str, Any]], limits: dict[str, float], gpu: bool) -> float:
    if dtype not in ("float16", "bfloat16") or not gpu:
        return limits["float32_gflops"]
    found = [0.0]
    for row in rows:
        if row["family"] == "matmul" and row["dtype"] == dtype and "us" in row:
            found += [
                row["flops"] / us * 1e-3
                for us in (row["us"], *(p["us"] for p in row["peers"].values() if "us" in p))
            ]
    return max(found)
