"""Result files: written, joined, read; RESULTS.md and plots from them."""

from __future__ import annotations

import collections
import itertools
import json
import pathlib
import shlex
from collections.abc import Callable
from typing import Any

import ages
import contest
import plot
import report
from families import FAMILIES

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = 3
Book = dict[str, Any]
Entry = dict[str, Any]
Age = Callable[[str, str], int | None]  # of a commit and a family: ages.commits_since
TABLE = ("family", "group", "dtype", "run")  # what rows of a table in a file have in common


def book(meta: dict[str, Any], rows: list[dict[str, Any]], before: Book | None = None) -> Book:
    """A run's results, with the rows of older ones that it did not measure. Rows say by "run" which
    run they are from."""
    runs, kept = [meta], []
    if before:
        measured = {r["name"] for r in rows}
        kept = [r for r in before["rows"] if r["name"] not in measured]
        used = sorted({r["run"] for r in kept})
        runs = [before["runs"][i] for i in used] + [meta]
        kept = [{**r, "run": used.index(r["run"])} for r in kept]
    mine = [{**r, "run": len(runs) - 1} for r in rows]
    joined = {
        "schema": SCHEMA,
        "device": meta["device"],
        "gpu": meta["gpu"],
        "runs": runs,
        "rows": [*kept, *mine],
    }
    _add_shares(joined)
    return joined


def _add_shares(found: Book) -> None:
    for index, run in enumerate(found["runs"]):
        own = [r for r in found["rows"] if r["run"] == index]
        contest.add_shares(own, run["limits"], found["gpu"], found["rows"])


def _digits(value: float, digits: int) -> str:
    """The shortest text of JSON for it."""
    if abs(value) == float("inf"):
        return "1e300"
    text = f"{value:.{digits}g}"
    power = text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    plain = f"{float(text):.0f}"
    return plain if float(plain) == float(text) and len(plain) <= len(power) else power


def _peer_cells(peer: Entry) -> str:
    """A peer's time, the range of the ratios, the difference of results, and whether that is too
    large; or why it refused."""
    if "refused" in peer:
        return json.dumps(peer["refused"])
    cells = [
        _digits(peer["us"], 5),
        _digits(peer["low"], 5),
        _digits(peer["high"], 5),
        _digits(peer["difference"], 2),
    ]
    return f"[{','.join(cells + ['true'] * peer['wrong'])}]"


def _row_line(row: Entry) -> str:
    peers = ",".join(
        f"{json.dumps(n)}:{_peer_cells(p)}" for n, p in row["peers"].items() if len(p) != 2
    )
    kept = {k: row[k] for k in ("error", "metrics", "cold_s") if row.get(k)}
    kept |= {k: row[k] for k, usual in (("weight", 1.0), ("size", 0)) if row.get(k, usual) != usual}
    if row["family"] == "growth":
        kept |= {k: row[k] for k in ("scratch", "memory") if k in row}
    cells = [json.dumps(row["name"])]
    for key, digits in (("us", 5), ("us_low", 5), ("us_high", 5), ("flops", 5), ("bytes", 5)):
        cells.append(_digits(row.get(key, 0.0), digits))
    cells.append(f"{{{peers}}}")
    return f"[{','.join(cells + [json.dumps(kept, separators=(',', ':'))] * bool(kept))}]"


def save(path: str, book: Book) -> None:
    """What tables, plots and comparisons need, one row a line. Left out is what `load` computes
    again: ratios, shares."""
    runs = []
    for run in book["runs"]:
        abouts = {
            n: {k: a[k] for k in ("name", "versions", "settings") if a.get(k)}
            for n, a in run["contestants"].items()
        }
        limits = {k: float(_digits(v, 5)) for k, v in run["limits"].items()}
        runs.append(json.dumps({**run, "limits": limits, "contestants": abouts}))
    tables = []
    for key, rows in itertools.groupby(book["rows"], lambda r: {k: r.get(k, "") for k in TABLE}):
        lines = ",\n".join(map(_row_line, rows))
        tables.append(f'{json.dumps(key)[:-1]}, "rows": [\n{lines}]}}')
    head = json.dumps({"schema": SCHEMA, "device": book["device"], "gpu": book["gpu"]})
    parts = [
        head[:-1] + ',\n"runs": [',
        ",\n".join(runs) + '],\n"tables": [',
        ",\n".join(tables) + "]}",
    ]
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text("\n".join(parts) + "\n")


def _peer(cells: Any, us: float) -> Entry:
    if isinstance(cells, str):
        return {"refused": cells}
    theirs, low, high, difference, *wrong = cells
    return {
        "us": theirs,
        "ratio": theirs / us,
        "low": low,
        "high": high,
        "difference": difference,
        "wrong": bool(wrong),
    }


def _row(cells: list[Any], table: Entry) -> Entry:
    name, us, low, high, flops, size, peers, *kept = cells
    row = {k: table[k] for k in TABLE} | {
        "name": name,
        "flops": flops,
        "bytes": size,
        "weight": 1.0,
        "size": 0,
    }
    row |= {"scratch": 0, "memory": 0} | (kept[0] if kept else {})
    row["peers"] = {n: _peer(p, us) for n, p in peers.items()}
    row["wrong"] = any(p.get("wrong") for p in row["peers"].values())
    return row if "error" in row else row | {"us": us, "us_low": low, "us_high": high}


def load(path: str) -> Book:
    """A file of `save`, or of its predecessor (schema 2), which had rows with all that was known of
    them."""
    found = json.loads(pathlib.Path(path).read_text())
    if found.get("schema") == 2:
        return found
    if found.get("schema") != SCHEMA:
        raise SystemExit(
            f"bench: {path} has schema {found.get('schema')}, this bench reads {SCHEMA}: measure "
            f"again"
        )
    found["rows"] = [_row(cells, table) for table in found.pop("tables") for cells in table["rows"]]
    _add_shares(found)
    return found


def section(found: Book, name: str, age: Age = ages.commits_since) -> list[str]:
    # Two drivers may give one processor's name.
    driver = found["runs"][-1]["contestants"]["ocltensor"]["versions"]["driver"].split(",")[0]
    lines = [f"## {found['device']} ({driver})", "", *_machines(found), ""]
    goals = report.goals_table(found["rows"], found["gpu"])
    present = {r["family"] for r in found["rows"]}
    families = [name for name in FAMILIES if name in present]
    old = [f for f in families if _remarks(found, f, age)]
    if goals:
        lines += ["### goals", ""]
        if old:
            lines += [f"{ages.MARK}: what is from {', '.join(old)}, see there.", ""]
        lines += [*goals, ""]
    if name:
        lines += [f"![Roofline of {found['device']}](results/{name}-roofline.svg)", ""]
        if any(r["family"] == "growth" for r in found["rows"]):
            lines += [f"![Time against size](results/{name}-growth.svg)", ""]
    for family in families:
        rows = [r for r in found["rows"] if r["family"] == family]
        lines += [f"### {family}", ""]
        for remark in _remarks(found, family, age):
            lines += [remark, ""]
        lines += [*_how(found, rows), ""]
        for part in (
            report.rows_table(rows),
            report.sums_table(rows),
            report.means_table(rows),
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
            f"- {m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}; every "
            f"contestant has {run['threads']} threads"
        )
        for about in run["contestants"].values():
            settings = {**about.get("settings", {}), **about["versions"]}
            lines.append(
                f"- {about['name']}: " + ", ".join(f"{k} {v}" for k, v in settings.items())
            )
    return list(dict.fromkeys(lines))


def _remarks(found: Book, family: str, age: Age) -> list[str]:
    """One of each run that is older than the family's kernels allow."""
    runs = collections.Counter(r["run"] for r in found["rows"] if r["family"] == family)
    remarks = (
        ages.remark(family, count, age(found["runs"][run]["commit"], family))
        for run, count in sorted(runs.items())
    )
    return [text for text in remarks if text]


def _how(found: Book, rows: list[dict[str, Any]]) -> list[str]:
    """Command, time and limits of each run that a table's rows are from."""
    lines = []
    for index in sorted({r["run"] for r in rows}):
        run = found["runs"][index]
        limits = ", ".join(f"{k.replace('_', ' ')} {v:.1f}" for k, v in run["limits"].items())
        count = sum(r["run"] == index for r in rows)
        lines.append(
            f"- {count} rows: `{_command(run)}`, {run['date']}, commit {run['commit'] or '-'}, "
            f"load {run['machine']['load']}" + (f"; limits: {limits}" if limits else "")
        )
    return lines


INTRO = f"""# Measured tables

Generated by `./run bench --markdown` from `results/*.json`: do not edit. How rows are measured:
[README.md](README.md). Ratio = peer's time / ours (above 1: faster than the peer), with its range
over paired samples; ± is half the range of our own. "Of limit": of the time that this machine's
copy bandwidth and multiply-adds allow, both measured in the same run (rows that fit a cache can be
above 100 %). Every result was compared with the peers' before it was timed, but for those that are
drawn (dropout) or not unique (eigenvectors); "difference" is the largest, relative to the largest
value, and 0 where nothing was compared. A section that is marked as old had been measured at least
{ages.OLD} commits of its kernels before this page was generated: measure again before quoting it.
"""


def committed_tables(age: Age = ages.commits_since) -> str:
    """RESULTS.md as the files of results/ give it."""
    folder = HERE / "results"
    text = [INTRO]
    for path in sorted(folder.glob("*.json")):
        text += section(load(str(path)), path.stem, age)
    text += [p.read_text() for p in sorted(folder.glob("*.md"))]
    return "\n".join(text).rstrip() + "\n"


def draw(markdown: str, plots: str, current: Book) -> None:
    folder = HERE / "results"
    if markdown and pathlib.Path(markdown).resolve() == HERE / "RESULTS.md":
        for path in folder.glob("*.json"):
            plot.write(load(str(path)), folder, path.stem + "-")
        pathlib.Path(markdown).write_text(committed_tables())
        print(f"written: {markdown}")
    elif markdown:
        pathlib.Path(markdown).write_text("\n".join(section(current, "")) + "\n")
        print(f"written: {markdown}")
    if plots:
        for path in plot.write(current, pathlib.Path(plots), ""):
            print(f"written: {path}")
