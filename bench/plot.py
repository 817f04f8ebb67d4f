"""Log-log plots as SVG: the roofline of a run, and time against size."""

from __future__ import annotations

import html
import math
import pathlib
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 900, 560, 70, 40, 190, 50
COLOURS = [
    "#00798c",
    "#d1495b",
    "#6a994e",
    "#8f6bb3",
    "#edae49",
    "#3d5a80",
    "#b56576",
    "#5b8e7d",
    "#a0a0a0",
    "#c07f00",
]


class Axes:
    """A frame with logarithmic axes; points outside are left out by whoever chose the ranges."""

    def __init__(
        self, title: str, x: tuple[float, float], y: tuple[float, float], names: tuple[str, str]
    ) -> None:
        self.x_range, self.y_range = x, y
        self.out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        ]
        self.text(LEFT, 22, title, 'font-size="15"')
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, names[0], 'text-anchor="middle"')
        self.text(
            14,
            (TOP + HEIGHT - BOTTOM) / 2,
            names[1],
            f'text-anchor="middle" transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})"',
        )
        for power in _powers(x):
            at = self.x(10.0**power)
            self.segment(at, TOP, at, HEIGHT - BOTTOM, "#e4e4e4")
            self.text(at, HEIGHT - BOTTOM + 16, _label(power), 'text-anchor="middle"')
        for power in _powers(y):
            at = self.y(10.0**power)
            self.segment(LEFT, at, WIDTH - RIGHT, at, "#e4e4e4")
            self.text(LEFT - 6, at + 4, _label(power), 'text-anchor="end"')
        self.legend_y = TOP + 8.0

    def x(self, v: float) -> float:
        return LEFT + _share(v, self.x_range) * (WIDTH - LEFT - RIGHT)

    def y(self, v: float) -> float:
        return HEIGHT - BOTTOM - _share(v, self.y_range) * (HEIGHT - TOP - BOTTOM)

    def text(self, x: float, y: float, words: str, options: str = "") -> None:
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {options}>{html.escape(words)}</text>')

    def segment(
        self, x0: float, y0: float, x1: float, y1: float, colour: str, options: str = ""
    ) -> None:
        self.out.append(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
            f'stroke="{colour}" {options}/>'
        )

    def line(self, points: list[tuple[float, float]], colour: str, options: str = "") -> None:
        path = " ".join(f"{self.x(x):.0f},{self.y(y):.0f}" for x, y in points)
        self.out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" {options}/>')

    def points(self, places: list[tuple[float, float]], colour: str, hollow: bool = False) -> None:
        """Dots as one path, whose pieces of no length have round ends: a picture of hundreds stays
        small."""
        path = "".join(f"M{self.x(x):.0f} {self.y(y):.0f}h0" for x, y in places)
        widths = ((colour, 8), ("#fff", 5)) if hollow else ((colour, 7),)
        for ink, width in widths if places else ():
            self.out.append(
                f'<path d="{path}" stroke="{ink}" stroke-width="{width}" '
                'stroke-linecap="round" fill="none"/>'
            )

    def legend(self, words: str, colour: str, hollow: bool = False) -> None:
        fill = f'fill="none" stroke="{colour}"' if hollow else f'fill="{colour}"'
        self.out.append(
            f'<circle cx="{WIDTH - RIGHT + 16}" cy="{self.legend_y:.0f}" r="4" {fill}/>'
        )
        self.text(WIDTH - RIGHT + 26, self.legend_y + 4, words)
        self.legend_y += 18

    def done(self) -> str:
        return "\n".join([*self.out, "</svg>", ""])


def _share(v: float, within: tuple[float, float]) -> float:
    low, high = map(math.log10, within)
    return (math.log10(max(v, 1e-300)) - low) / (high - low)


def _powers(within: tuple[float, float]) -> range:
    return range(
        math.ceil(math.log10(within[0]) - 1e-9), math.floor(math.log10(within[1]) + 1e-9) + 1
    )


def _label(power: int) -> str:
    return f"{10**power:g}" if -3 <= power < 4 else f"1e{power}"


def _around(values: list[float]) -> tuple[float, float]:
    return 10.0 ** math.floor(math.log10(min(values)) - 0.05), 10.0 ** math.ceil(
        math.log10(max(values)) + 0.05
    )


def roofline(book: dict[str, Any]) -> str:
    """GFLOP/s against FLOP/byte of the rows that compute; filled: ours, hollow: the first peer."""
    rows = [
        r
        for r in book["rows"]
        if r.get("flops")
        and r.get("bytes")
        and "us" in r
        and r["family"] not in ("growth", "models")
    ]
    limits = next((run["limits"] for run in reversed(book["runs"]) if run["limits"]), None)
    if not rows or not limits:
        return ""
    peak = max([limits["float32_gflops"], *(r["flops"] / r["us"] * 1e-3 for r in rows)])
    x = _around([r["flops"] / r["bytes"] for r in rows])
    y = _around([*(r["flops"] / r["us"] * 1e-3 for r in rows), peak])
    axes = Axes(f"Roofline, {book['device']}", x, y, ("FLOP per byte", "GFLOP/s"))
    bandwidth, roof = limits["copy_gbytes"], limits["float32_gflops"]
    knee = roof / bandwidth
    axes.line(
        [(max(x[0], y[0] / bandwidth), max(x[0] * bandwidth, y[0])), (knee, roof), (x[1], roof)],
        "#222",
        'stroke-width="2"',
    )
    axes.text(
        axes.x(knee) + 6, axes.y(roof) - 6, f"{roof:.0f} GFLOP/s float32, {bandwidth:.0f} GB/s copy"
    )
    families = list(dict.fromkeys(r["family"] for r in rows))
    for family in families:
        colour = COLOURS[families.index(family) % len(COLOURS)]
        axes.legend(family, colour)
        mine = [r for r in rows if r["family"] == family]
        peers = [(r, next((p["us"] for p in r["peers"].values() if "us" in p), None)) for r in mine]
        for hollow, times in ((True, peers), (False, [(r, r["us"]) for r in mine])):
            places = [
                (r["flops"] / r["bytes"], max(r["flops"] / us * 1e-3, y[0]))
                for r, us in times
                if us
            ]
            axes.points(places, colour, hollow)
    axes.legend("hollow: the peer", "#222", hollow=True)
    return axes.done()


def growth(book: dict[str, Any]) -> str:
    """Time against size, one line a family; dashed: the first peer."""
    rows = [r for r in book["rows"] if r["family"] == "growth" and "us" in r]
    if not rows:
        return ""
    times = [
        t for r in rows for t in (r["us"], *(p["us"] for p in r["peers"].values() if "us" in p))
    ]
    axes = Axes(
        f"Time against size, {book['device']}",
        _around([r["size"] for r in rows]),
        _around(times),
        ("elements (pointwise, reduction), edge (matmul), length (attention)", "us"),
    )
    for i, group in enumerate(dict.fromkeys(r["group"] for r in rows)):
        mine = sorted((r for r in rows if r["group"] == group), key=lambda r: r["size"])
        axes.line([(r["size"], r["us"]) for r in mine], COLOURS[i], 'stroke-width="2"')
        theirs = [
            (r["size"], next(p["us"] for p in r["peers"].values() if "us" in p))
            for r in mine
            if any("us" in p for p in r["peers"].values())
        ]
        if theirs:
            axes.line(theirs, COLOURS[i], 'stroke-dasharray="4 3"')
        axes.points([(r["size"], r["us"]) for r in mine], COLOURS[i])
        axes.legend(group.removeprefix("growth "), COLOURS[i])
    axes.legend("dashed: the peer", "#222", hollow=True)
    return axes.done()


def write(book: dict[str, Any], folder: pathlib.Path, prefix: str) -> list[pathlib.Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in (("roofline", roofline(book)), ("growth", growth(book))):
        if picture:
            written.append(folder / f"{prefix}{name}.svg")
            written[-1].write_text(picture)
    return written
