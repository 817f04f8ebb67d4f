"""A line on standard error that says how far some long work has come."""

import sys


class Line:
    """Is overwritten, and removed at the end of the block; not ``shown``: nothing is printed."""

    def __init__(self, title: str, shown: bool | None) -> None:
        self.title = title
        self.shown = sys.stderr.isatty() if shown is None else shown

    def __enter__(self) -> "Line":
        return self

    def show(self, text: str) -> None:
        if self.shown:
            print(f"\r\033[Kocltensor: {self.title}, {text}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *exception: object) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
