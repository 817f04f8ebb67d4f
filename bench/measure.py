"""Timing of one contestant: calls over several sets of data, as many as last long enough, and one
wait at the end."""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_SETS = 64
MOST_CALLS = 2000


def sets_for(bytes_of_one: float, cache: int) -> int:
    """How many sets of data a row takes turns with, so that none is found in the last-level cache
    (4 times its size)."""
    return (
        max(1, min(MOST_SETS, -(-4 * cache // max(int(bytes_of_one), 1))))
        if bytes_of_one < 4 * cache
        else 1
    )


class Timer:
    """Calls `bodies` in turn; `finish` waits for all of them."""

    def __init__(self, bodies: list[Callable[[], object]], finish: Callable[[], None]) -> None:
        self.bodies, self.finish = bodies, finish
        self.once = 0.0

    def warm(self) -> float:
        """Every body once, then the time of one call in seconds, roughly."""
        for body in self.bodies:
            body()
        self.finish()
        begin = time.perf_counter()
        self.bodies[0]()
        self.finish()
        self.once = time.perf_counter() - begin
        if self.once < 1e-3:
            self.once = self.run(min(50, max(3, int(1e-3 / max(self.once, 1e-7)))))
        return self.once

    def run(self, count: int) -> float:
        bodies, sets = self.bodies, len(self.bodies)
        order = [bodies[i % sets] for i in range(count)]
        begin = time.perf_counter()
        for body in order:
            body()
        self.finish()
        return (time.perf_counter() - begin) / count

    def sample(self, seconds: float) -> float:
        """Seconds of one call; one unmeasured call first, unless calls are so long that it does not
        matter."""
        if self.once < seconds:
            self.bodies[-1]()
            self.finish()
        count = max(1, min(MOST_CALLS, int(seconds / max(self.once, 1e-7))))
        self.once = self.run(count)
        return self.once
