"""One contestant in a process of its own: answers a line of JSON on standard input with a line on
standard output.

usage: worker.py KIND [options], started by peers.py; requests are {"do": NAME, ...}, answers {"ok":
...} or {"error": TEXT}.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys


def parse(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("kind")
    p.add_argument("--plugin", default="")
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--torch-device", default="cpu")
    p.add_argument("--sdp", default="")
    p.add_argument("--defaults", action="store_true")
    p.add_argument("--compiled", action="store_true")
    p.add_argument("--clblast-tuned", default="")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--cache", type=int, default=32 << 20)
    p.add_argument("--setting", action="append", default=[])
    p.add_argument(
        "--cold",
        default="",
        metavar="ROW",
        help="run this row of a model once, print the seconds, and end",
    )
    p.add_argument("--scale", default="cpu")
    return p.parse_args(argv)


class Worker:
    def __init__(self, options: argparse.Namespace) -> None:
        import sides
        from families import all_rows
        from rows import Scale

        self.side = sides.make(options.kind, options)
        words = options.scale.split("+")
        self.rows = {row.name: row for row in all_rows(Scale("gpu" in words, "full" in words))}

    def answer(self, request: dict) -> object:
        what = request["do"]
        if what in ("describe", "limits"):
            return getattr(self.side, what)()
        if what == "sample":
            return self.side.sample(request["seconds"])
        if what == "release":
            return self.side.release()
        if what == "trace":
            return self.side.trace(request["path"], [self.rows[name] for name in request["rows"]])
        row = self.rows[request["row"]]
        if what == "metrics":
            return self.side.metrics(row)
        if what == "prepare":
            return self.side.prepare(row) if self.side.supports(row) else {"skip": True}
        raise ValueError(f"there is no request '{what}'")


def first_line(e: BaseException) -> str:
    lines = [line for line in str(e).splitlines() if line.strip()]
    return f"{type(e).__name__}: {lines[0][:300] if lines else ''}"


def main() -> int:
    # Libraries print where they like: answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    options = parse(sys.argv[1:])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    if options.cold:
        import cold

        print(json.dumps({"ok": cold.run(options)}), file=answers, flush=True)
        return 0
    try:
        worker = Worker(options)
    except Exception as e:  # noqa: BLE001  the bench goes on without this contestant
        print(json.dumps({"error": first_line(e)}), file=answers, flush=True)
        return 1
    print(json.dumps({"ok": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"ok": worker.answer(request)}
        except Exception as e:  # noqa: BLE001  the row is reported as not run
            reply = {"error": first_line(e)}
            with contextlib.suppress(Exception):  # the device may be gone
                worker.side.release()
        print(json.dumps(reply), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
