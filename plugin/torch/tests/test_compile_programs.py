"""torch.compile: random programs against the CPU, in both styles of kernels.

usage: test_compile_programs.py [--programs N] [--first SEED] [options of unittest]

What fails is shown as the smallest program that does. --programs runs so many from a seed on, in
the style of this process, and lists all that fail.
"""

from __future__ import annotations

import argparse
import sys
import unittest
from collections.abc import Callable

import random_programs
import torch
from compile_case import CompileCase
from gpu_style import IS_GPU_STYLE, THOROUGH, InGpuStyle
from random_programs import Program

PROGRAMS = 300 if THOROUGH else 150


def difference(program: Program) -> str | None:
    """What the compiled program does otherwise, or None."""
    torch._dynamo.reset()
    try:
        compiled = torch.compile(program.function(), dynamic=program.is_dynamic, fullgraph=True)
        found = _difference(program, compiled)
        if found is None and program.is_dynamic:
            try:
                random_programs.run(program.resized())
            except random_programs.Invalid:
                return None
            found = _difference(program.resized(), compiled)
            return found and f"with other sizes, {found}"
    except Exception as error:  # of any kind: the program runs on the CPU
        return f"{type(error).__name__}: {error}"
    return found


def _difference(program: Program, compiled: Callable) -> str | None:
    want, known = random_programs.run(program)
    inputs = program.inputs("ocl")
    got = [*compiled(*inputs), *inputs]
    names = [*program.shown, *(given.name for given in program.given)]
    for name, ours, theirs in zip(names, got, want, strict=True):
        atol = random_programs.bound(known[name])
        if ours.device.type != "ocl":
            return f"{name} is on {ours.device}"
        try:
            torch.testing.assert_close(ours.cpu(), theirs, rtol=0, atol=atol, equal_nan=True)
        except AssertionError as error:
            return f"{name} (bound {atol:.3g}): {error}"
    return None


def report(seed: int) -> str | None:
    """Of a program that fails, the smallest one and what it does."""
    program = random_programs.draw(seed)
    if difference(program) is None:
        return None
    least = random_programs.smallest(program, lambda p: difference(p) is not None)
    return f"{least}\n{difference(least)}"


class Programs(InGpuStyle, CompileCase):
    OPTIMISED = False

    def test_drawn(self) -> None:
        """All in each style with --thorough, else every other one."""
        for seed in range(PROGRAMS) if THOROUGH else range(IS_GPU_STYLE, PROGRAMS, 2):
            with self.subTest(seed=seed):
                found = report(seed)
                self.assertIsNone(found, found)


def many(first: int, count: int) -> int:
    case = Programs()
    case.setUp()
    failed = 0
    for seed in range(first, first + count):
        found = report(seed)
        if found is not None:
            failed += 1
            print(f"{found}\n", flush=True)
    case.doCleanups()
    print(f"{count} programs from seed {first}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("--programs", type=int)
    p.add_argument("--first", type=int, default=0)
    options, rest = p.parse_known_args()
    if options.programs is not None:
        sys.exit(many(options.first, options.programs))
    unittest.main(argv=[sys.argv[0], *rest])
