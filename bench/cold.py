"""A model's first step in a fresh process: seconds from the first use of the device to the end of
the step."""

from __future__ import annotations

import argparse
import time


def run(options: argparse.Namespace) -> float:
    import models
    import sides
    from families import all_rows
    from rows import Scale

    side = sides.make(options.kind, options)  # imports and registers, uses no device yet
    words = options.scale.split("+")
    row = next(
        r for r in all_rows(Scale("gpu" in words, "full" in words)) if r.name == options.cold
    )
    name, mode, batch, size, dtype, more = row.args
    job = models.Job(name, mode, batch, size, dtype, **more)
    begin = time.perf_counter()
    job.start(side.device)()
    side.finish()
    return time.perf_counter() - begin
