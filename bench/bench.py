"""The bench: operators and models of a plugin side by side with peers, in alternating samples, one
process for each.

usage: bench.py --plugin PATH [FAMILY...] [--peer NAME[,NAME...]] [--only TEXT] [--json FILE]
[--merge] [--compare OLD.json] [--earlier PATH]

Every result is compared with the peers' before it is timed. Rows show the median, half its spread,
the peer's time, the ratio peer / ours (above 1: faster than the peer) with its range, and the share
of the machine's limits measured in the same run. Peers: auto (torch on the CPU, or on CUDA for an
NVIDIA GPU; the driver's copy; OpenBLAS; CLBlast; dlprimitives), none, or names, see --help;
--earlier adds another build of the plugin. Exit status 1: a wrong result, a row that was not run,
or with --compare or --earlier a row that became slower.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import time
from typing import Any

import contest
import report
import results
from families import EXTRA, FAMILIES, all_rows
from peers import EARLIER, KINDS, Contestant, Refused, Setup
from rows import Row, Scale

PEERS = [name for name in KINDS if name not in EARLIER.values()]  # what --peer takes
OURS = {"": "ocltensor", "torch": "torch-ocl", "launch": "launch"}  # who runs a row, by Row.only


def parse(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "families", nargs="*", help=f"{', '.join(FAMILIES)}; default: all but {', '.join(EXTRA)}"
    )
    p.add_argument(
        "--plugin", default="", help="libocltensor_plugin.so; needed unless --from is given"
    )
    p.add_argument(
        "--earlier",
        default="",
        metavar="PATH",
        help="another build's libocltensor_plugin.so: a peer of every row, torch_ocl and "
        "launch_bench of its folder included",
    )
    p.add_argument("--device", type=int, default=0)
    p.add_argument(
        "--peer", default="auto", help=f"auto, none, or names with commas: {', '.join(PEERS)}"
    )
    p.add_argument(
        "--clblast-tuned",
        default="",
        metavar="FOLDER",
        help="what CLBlast's tuners wrote for this device: the peer clblast-tuned uses it",
    )
    p.add_argument(
        "--threads",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="cores that every contestant gets",
    )
    p.add_argument("--samples", type=int, default=5)
    p.add_argument(
        "--seconds",
        type=float,
        default=0.03,
        help="how long a sample lasts at least, but for long calls",
    )
    p.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="rows whose name contains this text; given again: this, too",
    )
    p.add_argument(
        "--scale", choices=("auto", "cpu", "gpu"), default="auto", help="sizes of the rows"
    )
    p.add_argument(
        "--full", action="store_true", help="also the rows that are left out for their time"
    )
    p.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the plugin",
    )
    p.add_argument("--list", action="store_true", help="print the rows' names and end")
    p.add_argument("--no-cold", action="store_true", help="models: no first steps with cold caches")
    p.add_argument(
        "--json",
        nargs="?",
        const="bench.json",
        default="",
        metavar="FILE",
        help="write the results (bench.json)",
    )
    p.add_argument(
        "--merge",
        action="store_true",
        help="keep the rows of --json's file that are not measured now",
    )
    p.add_argument(
        "--from",
        dest="source",
        default="",
        metavar="FILE",
        help="measure nothing, take these results",
    )
    p.add_argument(
        "--compare", default="", metavar="OLD.json", help="paired ratios to an earlier run"
    )
    p.add_argument(
        "--markdown",
        nargs="?",
        const=str(results.HERE / "RESULTS.md"),
        default="",
        metavar="FILE",
        help="generate RESULTS.md from bench/results/*.json, or FILE from these results alone",
    )
    p.add_argument(
        "--plot",
        nargs="?",
        const=".",
        default="",
        metavar="FOLDER",
        help="roofline and growth plots as SVG",
    )
    p.add_argument(
        "--trace",
        default="",
        metavar="FILE",
        help="three more runs of every row as a trace for Perfetto",
    )
    return p.parse_args(argv)


def wanted(row: Row, options: argparse.Namespace) -> bool:
    return all(text in row.name for text in options.only)


def machine() -> dict[str, Any]:
    cpu = next(
        (
            text.split(":", 1)[1].strip()
            for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if text.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 1),
    }


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=results.HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def start(name: str, setup: Setup) -> Contestant | None:
    try:
        return Contestant(name, setup)
    except Refused as e:
        print(f"no {name}: {e}", file=sys.stderr)
        return None


def peer_names(options: argparse.Namespace, ours: dict[str, Any]) -> list[str]:
    if options.peer == "none":
        return []
    if options.peer != "auto":
        unknown = [n for n in options.peer.split(",") if n not in PEERS]
        if unknown:
            sys.exit(f"bench: there is no peer '{unknown[0]}'; there are {', '.join(PEERS)}")
        if "clblast-tuned" in options.peer.split(",") and not options.clblast_tuned:
            sys.exit("bench: the peer clblast-tuned needs --clblast-tuned FOLDER")
        return options.peer.split(",")
    libraries = ["clblast-tuned" if options.clblast_tuned else "clblast", "dlprimitives"]
    if "NVIDIA" in ours["vendor"] and ours["gpu"]:
        return ["torch-cuda", "torch-cuda-flash", "torch-cuda-cudnn", "driver", *libraries]
    return ["torch-cpu", "driver", "openblas", *libraries]


class Run:
    """The contestants of one run, started when their first row comes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.setup = Setup(
            str(pathlib.Path(options.plugin).resolve()),
            options.device,
            options.threads,
            settings=tuple(options.setting),
            clblast_tuned=options.clblast_tuned
            and str(pathlib.Path(options.clblast_tuned).resolve()),
            earlier=options.earlier and str(pathlib.Path(options.earlier).resolve()),
        )
        self.ours = start("ocltensor", self.setup)
        if self.ours is None:
            sys.exit("bench: the plugin does not start")
        self.gpu = self.ours.about["gpu"] if options.scale == "auto" else options.scale == "gpu"
        self.scale = Scale(self.gpu, options.full)
        words = ("gpu" if self.gpu else "cpu") + ("+full" if options.full else "")
        self.setup = dataclasses.replace(
            self.setup, scale=words, cache=self.ours.about["cache_bytes"]
        )
        self.ours.close()
        self.ours = start("ocltensor", self.setup)
        self.names = peer_names(options, self.ours.about)
        self.started: dict[str, Contestant | None] = {"ocltensor": self.ours}
        self.limits: dict[str, float] = {}

    def contestant(self, name: str) -> Contestant | None:
        if name not in self.started:
            self.started[name] = start(name, self.setup)
        return self.started[name]

    def rows(self) -> list[Row]:
        chosen = self.options.families or [name for name in FAMILIES if name not in EXTRA]
        unknown = [name for name in chosen if name not in FAMILIES]
        if unknown:
            sys.exit(f"bench: there is no family '{unknown[0]}'; there are {', '.join(FAMILIES)}")
        return [row for row in all_rows(self.scale, chosen) if wanted(row, self.options)]

    def measure(self, row: Row) -> dict[str, Any]:
        ours = self.contestant(OURS[row.only])
        if ours is None:
            return {
                "name": row.name,
                "family": row.family,
                "group": row.group,
                "peers": {},
                "error": f"{OURS[row.only]} does not start",
            }
        names = [EARLIER[OURS[row.only]], *self.names] if self.setup.earlier else self.names
        peers = [c for c in map(self.contestant, names) if c is not None and c is not ours]
        cold = not self.options.no_cold and (
            row.group in ("model train", "network") or "decode" in row.name
        )
        return contest.measure(row, ours, peers, self.options.samples, self.options.seconds, cold)

    def meta(self) -> dict[str, Any]:
        found = {name: c.about for name, c in self.started.items() if c is not None}
        return {
            "command": "bench.py " + shlex.join(sys.argv[1:]),
            "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
            "commit": commit(),
            "machine": machine(),
            "device": self.ours.about["device"],
            "gpu": self.gpu,
            "threads": self.options.threads,
            "limits": self.limits,
            "contestants": found,
        }


def measure_all(options: argparse.Namespace) -> tuple[results.Book, list[dict[str, Any]]]:
    """(results with what --merge keeps, rows measured now); --json's file is written every few
    rows."""
    run = Run(options)
    rows = run.rows()
    print(
        f"ours: {run.ours.about['device']}   peers: {', '.join(run.names) or 'none'}   "
        f"{len(rows)} rows",
        flush=True,
    )
    if any(not row.only for row in rows):
        run.limits = run.ours.ask("limits")
        print(
            "limits: " + ", ".join(f"{key} {value:.1f}" for key, value in run.limits.items()),
            flush=True,
        )
    older = None
    if options.merge and options.json and pathlib.Path(options.json).exists():
        older = results.load(options.json)
        names = {
            row.name for row in all_rows(Scale(run.gpu, True))
        }  # rows that the bench had once are dropped
        older["rows"] = [r for r in older["rows"] if r["name"] in names]
    found: list[dict[str, Any]] = []
    begin = time.perf_counter()
    for i, row in enumerate(rows, 1):
        entry = run.measure(row)
        found.append(entry)
        contest.add_shares(found, run.limits, run.gpu)
        print(
            f"[{i:>{len(str(len(rows)))}}/{len(rows)}] {row.name:52} {report.line(entry)}",
            flush=True,
        )
        if options.json and i % 20 == 0:
            results.save(options.json, results.book(run.meta(), found, older))
    if options.trace:
        run.ours.ask("trace", path=options.trace, rows=[row.name for row in rows if not row.only])
        print(f"trace: {options.trace}")
    if (
        run.limits and run.ours.process
    ):  # again: whatever disturbed one of the two, the better one is nearer the machine's limit
        again = run.ours.ask("limits")
        run.limits = {
            k: min(v, again[k]) if k == "launch_us" else max(v, again[k])
            for k, v in run.limits.items()
        }
        contest.add_shares(found, run.limits, run.gpu)
    print("\n".join(report.means_table(found)))
    print(f"{len(rows)} rows in {time.perf_counter() - begin:.0f} s")
    book = results.book(run.meta(), found, older)
    if options.json:
        results.save(options.json, book)
    for c in run.started.values():
        if c is not None:
            c.close()
    return book, found


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.list:
        print(
            "\n".join(
                f"{r.family:10} {r.name}"
                for r in all_rows(
                    Scale(options.scale == "gpu", options.full), options.families or None
                )
                if wanted(r, options)
            )
        )
        return 0
    if options.source:
        book = results.load(options.source)
        measured = book["rows"]
    elif options.plugin:
        book, measured = measure_all(options)
    else:
        sys.exit("bench: --plugin PATH is needed (or ./run bench)")
    print(
        "\n".join([*report.goals_text(book["rows"], book["gpu"]), *report.growth_table(measured)])
    )
    failed = any(r.get("wrong") or "error" in r for r in measured)
    if options.compare:
        lines, worse = report.compare(results.load(options.compare)["rows"], measured)
        print("\n".join(lines))
        failed = failed or worse > 0
    lines, worse = report.against_earlier(measured)
    print("\n".join(lines))
    failed = failed or worse > 0
    results.draw(options.markdown, options.plot, book)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
