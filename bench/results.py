"""Result files: written, joined, read; RESULTS.md and plots from them."""

from __future__ import annotations

import json
import pathlib
import shlex
from typing import Any

import contest
import plot
import report
from families import FAMILIES

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = 2
Book = dict[str, Any]


def book(meta: dict[str, Any], rows: list[dict[str, Any]], before: Book | None = None) -> Book:
    """A run's results, with the rows of older ones that it did not measure. Rows say by "run" which run they are from."""
    runs, kept = [meta], []
    if before:
        measured = {r["name"] for r in rows}
        kept = [r for r in before["rows"] if r["name"] not in measured]
        used = sorted({r["run"] for r in kept})
        runs = [before["runs"][i] for i in used] + [meta]
        kept = [{**r, "run": used.index(r["run"])} for r in kept]
    mine = [{**r, "run": len(runs) - 1} for r in rows]
    for index, run in enumerate(runs):
        own = [r for r in [*kept, *mine] if r["run"] == index]
        contest.add_shares(own, run["limits"], meta["gpu"], [*kept, *mine])
    return {
        "schema": SCHEMA,
        "device": meta["device"],
        "gpu": meta["gpu"],
        "runs": runs,
        "rows": [*kept, *mine],
    }


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}") if abs(value) != float("inf") else 1e300
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items()}
    return [_short(v) for v in value] if isinstance(value, list) else value


def save(path: str, book: Book) -> None:
    """One row a line, so that versions of the file can be told apart."""
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    head = {k: v for k, v in book.items() if k != "rows"}
    body = ",\n".join(json.dumps(_short(r)) for r in book["rows"])
    text = json.dumps(_short(head), indent=1)[:-2] + ',\n "rows": [\n' + body + "\n]}\n"
    pathlib.Path(path).write_text(text)


def load(path: str) -> Book:
    found = json.loads(pathlib.Path(path).read_text())
    if found.get("schema") != SCHEMA:
        raise SystemExit(
            f"bench: {path} has schema {found.get('schema')}, this bench reads {SCHEMA}: measure again"
        )
    return found


def section(found: Book, name: str) -> list[str]:
    # Two drivers may give one processor's name.
    driver = found["runs"][-1]["contestants"]["ocltensor"]["versions"]["driver"].split(",")[0]
    lines = [f"## {found['device']} ({driver})", "", *_machines(found), ""]
    goals = report.goals_table(found["rows"], found["gpu"])
    if goals:
        lines += ["### goals", "", *goals, ""]
    if name:
        lines += [f"![Roofline of {found['device']}](results/{name}-roofline.svg)", ""]
        if any(r["family"] == "growth" for r in found["rows"]):
            lines += [f"![Time against size](results/{name}-growth.svg)", ""]
    present = {r["family"] for r in found["rows"]}
    for family in (name for name in FAMILIES if name in present):
        rows = [r for r in found["rows"] if r["family"] == family]
        lines += [f"### {family}", ""]
        lines += [*_how(found, rows), ""]
        for part in (
            report.rows_table(rows),
            report.sums_table(rows),
            report.models_table(rows),
            report.growth_table(rows),
        ):
            lines += [*part, ""] if part else []
    return lines


def _command(run: dict[str, Any]) -> str:
    """As it would be typed: without where the plugin lies and where the results went."""
    words, kept = shlex.split(run["command"])[1:], []
    while words:
        word = words.pop(0)
        if word in ("--plugin", "--json"):
            words = words[1:]
        elif word != "--merge":
            kept.append(word)
    return "./run bench " + shlex.join(kept)


def _machines(found: Book) -> list[str]:
    """Machine and versions of all runs; usually they are the same."""
    lines = []
    for run in found["runs"]:
        m = run["machine"]
        lines.append(
            f"- {m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}; every contestant has {run['threads']} threads"
        )
        for about in run["contestants"].values():
            settings = {**about.get("settings", {}), **about["versions"]}
            settings = {k: v for k, v in settings.items() if not k.endswith(("_DIR", "_PATH"))}
            lines.append(f"- {about['name']}: " + ", ".join(f"{k} {v}" for k, v in settings.items()))
    return list(dict.fromkeys(lines))


def _how(found: Book, rows: list[dict[str, Any]]) -> list[str]:
    """Command, time and limits of each run that a table's rows are from."""
    lines = []
    for index in sorted({r["run"] for r in rows}):
        run = found["runs"][index]
        limits = ", ".join(f"{k.replace('_', ' ')} {v:.1f}" for k, v in run["limits"].items())
        count = sum(r["run"] == index for r in rows)
        lines.append(
            f"- {count} rows: `{_command(run)}`, {run['date']}, commit {run['commit'] or '-'}, load {run['machine']['load']}"
            + (f"; limits: {limits}" if limits else "")
        )
    return lines


INTRO = """# Measured tables

Generated by `./run bench --markdown` from `results/*.json`: do not edit. How rows are measured: [README.md](README.md). Ratio = peer's
time / ours (above 1: faster than the peer), with its range over paired samples; ± is half the range of our own. "Of limit": of the
time that this machine's copy bandwidth and multiply-adds allow, both measured in the same run (rows that fit a cache can be above 100 %).
Every result was compared with the peers' before it was timed; "difference" is the largest, relative to the largest value.
"""


def draw(markdown: str, plots: str, current: Book) -> None:
    folder = HERE / "results"
    if markdown and pathlib.Path(markdown).resolve() == HERE / "RESULTS.md":
        text = [INTRO]
        for path in sorted(folder.glob("*.json")):
            found = load(str(path))
            plot.write(found, folder, path.stem + "-")
            text += section(found, path.stem)
        text += [p.read_text() for p in sorted(folder.glob("*.md"))]
        pathlib.Path(markdown).write_text("\n".join(text).rstrip() + "\n")
        print(f"written: {markdown}")
    elif markdown:
        pathlib.Path(markdown).write_text("\n".join(section(current, "")) + "\n")
        print(f"written: {markdown}")
    if plots:
        for path in plot.write(current, pathlib.Path(plots), ""):
            print(f"written: {path}")
