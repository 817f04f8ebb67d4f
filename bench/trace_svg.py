"""Draws a trace of `torch.ocl.profiler` as a picture: the host's ranges and operators, the device's
kernels, arrows between.

usage: trace_svg.py TRACE.json OUT.svg [--width 1500]

Kernels are coloured by family; what would be narrower than half a pixel is drawn together with its
neighbours.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Callable

HOST = 1
LEFT, GAP, ROW = 110, 18, 22
FAMILIES = [  # (parts of kernels' names, family, colour); the first that fits
    (("conv", "winograd", "im2col", "col2im", "unfold", "filter"), "convolution", "#d1495b"),
    (("matmul", "gemm", "dot"), "matrix product", "#00798c"),
    (("norm", "moments", "statistics", "planes"), "normalisation", "#8f6bb3"),
    (("pool",), "pooling", "#6a994e"),
    (("step", "foreach", "sgd", "adam", "multi"), "optimizer", "#3d5a80"),
    (("reduce", "sum", "mean", "softmax", "loss"), "reduction", "#b56576"),
    (("copy", "fill", "transpose", "pack", "cat"), "copies and fills", "#a0a0a0"),
    (("",), "elementwise and others", "#edae49"),
]


def family_of(event: dict) -> tuple[str, str]:
    name = (event["name"] + " " + event["args"].get("operator", "")).lower()
    if event["cat"] != "kernel":
        return FAMILIES[-2][1:]
    return next(
        (family, colour) for parts, family, colour in FAMILIES if any(p in name for p in parts)
    )


class Picture:
    def __init__(self, events: list[dict], width: int) -> None:
        self.slices = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])
        self.names = {
            (e["pid"], e["tid"]): e["args"]["name"]
            for e in events
            if e["ph"] == "M" and e["name"] == "thread_name"
        }
        self.devices = {
            e["pid"]: e["args"]["name"]
            for e in events
            if e["ph"] == "M" and e["name"] == "process_name"
        }
        self.begin = self.slices[0]["ts"]
        end = max(e["ts"] + e["dur"] for e in self.slices)
        self.scale = (width - LEFT - 10) / (end - self.begin)
        self.width, self.length = width, end - self.begin
        self.out: list[str] = []
        self.y = 46.0
        self.rows: dict[str, float] = {}
        self.where: dict[int, tuple[float, float]] = {}  # call: the point that its arrows leave
        self.seen: dict[str, tuple[str, float]] = {}  # family: (colour, time)

    def x(self, ts: float) -> float:
        return LEFT + (ts - self.begin) * self.scale

    def text(self, x: float, y: float, words: str, options: str = "") -> None:
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {options}>{html.escape(words)}</text>')

    def box(self, e: dict, colour: str, label: bool) -> None:
        x, width = self.x(e["ts"]), max(e["dur"] * self.scale, 0.4)
        title = (
            f"<title>{html.escape(e['name'])} {e['dur'] / 1e3:.3f} ms</title>" if width > 3 else ""
        )
        self.out.append(
            f'<rect x="{x:.1f}" y="{self.y:.0f}" width="{width:.1f}" height="{ROW}" '
            f'fill="{colour}">{title}</rect>'
        )
        if label and width > 6.5 * len(e["name"]):
            self.text(x + 3, self.y + 15, e["name"], 'fill="#fff"')

    def track(
        self, title: str, events: list[dict], colour_of: Callable[[dict], str], label: bool = True
    ) -> None:
        if not events:
            return
        self.text(LEFT - 8, self.y + 15, title, 'text-anchor="end"')
        last = None
        for e in events:
            colour = colour_of(e)
            if (
                last
                and e["dur"] * self.scale < 0.5
                and colour == last["colour"]
                and e["ts"] - last["end"] < 0.5 / self.scale
            ):
                last["e"]["dur"] = e["ts"] + e["dur"] - last["e"]["ts"]
                last["end"] = e["ts"] + e["dur"]
                continue
            if last:
                self.box(last["e"], last["colour"], label)
            last = {"e": dict(e), "colour": colour, "end": e["ts"] + e["dur"]}
        self.box(last["e"], last["colour"], label)
        self.y += ROW + GAP

    def draw(self) -> str:
        host = [e for e in self.slices if e["pid"] == HOST]
        for tid in sorted(
            {e["tid"] for e in host}, key=lambda t: min(e["ts"] for e in host if e["tid"] == t)
        ):
            mine = [e for e in host if e["tid"] == tid]
            calls = [e for e in mine if e["cat"] in ("operator", "copy")]
            self.track("ranges", [e for e in mine if e["cat"] == "range"], lambda e: "#444")
            for e in calls:
                self.where[e["args"]["call"]] = (self.x(e["ts"]), self.y + ROW)
            self.track("operators" if calls else "", calls, lambda e: "#5b8e7d")
        self.y += 46
        for key in sorted({(e["pid"], e["tid"]) for e in self.slices if e["pid"] > HOST}):
            work = [e for e in self.slices if (e["pid"], e["tid"]) == key]
            for e in work:
                family, colour = family_of(e)
                self.seen[family] = (colour, self.seen.get(family, ("", 0.0))[1] + e["dur"])
            self.arrows(work)
            self.track(self.names.get(key, "stream"), work, lambda e: family_of(e)[1])
        self.legend()
        device = ", ".join(name for pid, name in self.devices.items() if pid > HOST)
        head = (
            f"{device}: {self.length / 1e3:.1f} ms; above what the host calls, below what the "
            f"device does"
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.y:.0f}" '
                'font-family="sans-serif" font-size="12">',
                f'<rect width="{self.width}" height="{self.y:.0f}" fill="#fff"/>',
                f'<text x="10" y="24" font-size="15">{html.escape(head)}</text>',
                *self.out,
                "</svg>",
            ]
        )

    def arrows(self, work: list[dict]) -> None:
        """From the calls of the longest commands."""
        for e in sorted(work, key=lambda e: -e["dur"])[:40]:
            start = self.where.get(e["args"]["call"])
            if start:
                self.out.append(
                    f'<path d="M{start[0]:.1f} {start[1]:.0f}L{self.x(e["ts"]):.1f} {self.y:.0f}" '
                    'stroke="#999" '
                    'stroke-width="0.6" fill="none"/>'
                )

    def legend(self) -> None:
        x = float(LEFT)
        for family, (colour, total) in sorted(self.seen.items(), key=lambda item: -item[1][1]):
            words = f"{family} {total / 1e3:.1f} ms"
            self.out.append(
                f'<rect x="{x:.0f}" y="{self.y:.0f}" width="12" height="12" fill="{colour}"/>'
            )
            self.text(x + 17, self.y + 10, words)
            x += 40 + 6.4 * len(words)
        self.y += 28


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("trace")
    p.add_argument("out")
    p.add_argument("--width", type=int, default=1500)
    options = p.parse_args()
    with open(options.trace) as file:
        events = json.load(file)["traceEvents"]
    text = Picture(events, options.width).draw()
    with open(options.out, "w") as file:
        file.write(text + "\n")
    print(f"{options.out}: {len(text) / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
