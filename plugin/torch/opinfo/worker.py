"""Runs entries of PyTorch's test databases on ocl and on the CPU, one JSON line per entry; may
crash: sweep.py restarts it.

usage: worker.py DTYPE MODE [SAMPLES] < entry names, one per line
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch_ocl  # noqa: F401  registers the device
from samples import NoReference
from torch.testing._internal.opinfo.core import OpInfo

Cases = Iterator[tuple[str, Callable[[], None]]]


def checks() -> dict[str, Callable]:
    """What a mode does with a sample of op_db."""
    import compiled
    import derivatives
    import forms
    import values

    return {
        "forward": functools.partial(values.run_sample, grad=False),
        "grad": functools.partial(values.run_sample, grad=True),
        "noncontiguous": values.noncontiguous,
        "out": forms.out,
        "inplace": forms.inplace,
        "forward-mode": derivatives.forward_mode,
        "second": derivatives.second,
        "gradcheck": derivatives.gradcheck,
        "gradgradcheck": derivatives.gradgradcheck,
        "compiled": compiled.compiled,
    }


# Modes that need samples which require gradients.
DIFFERENTIATED = {"grad", "forward-mode", "second", "gradcheck", "gradgradcheck"}


def of_op_db(mode: str, op: OpInfo, dtype: Any) -> Cases:
    check = checks()[mode]
    differentiable = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    grad = mode in DIFFERENTIATED or (mode == "noncontiguous" and differentiable)
    if op.name.startswith("jiterator"):
        raise NoReference("CUDA alone has jiterator")
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=grad))
    except Exception as error:  # the CPU side: nothing to compare with
        raise NoReference(str(error)) from error
    for number, sample in enumerate(samples):
        yield f"sample {number}", functools.partial(check, op, sample, dtype)


def entries_of(mode: str) -> tuple[dict[str, Any], Callable[[Any, Any], Cases]]:
    """The database of a mode by entry names, and the cases of one of them."""
    if mode == "module":
        import modules

        return modules.by_name(), modules.cases
    if mode == "optimizer":
        import optimizers

        return optimizers.by_name(), optimizers.cases
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}, functools.partial(of_op_db, mode)


def run(cases: Cases, lenient: bool) -> tuple[str, str, int]:
    """(state, reason, cases run). `lenient`: cases that the CPU cannot run are left out."""
    count, label, without = 0, "", ""
    try:
        for label, case in cases:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    case()
                count += 1
            except NoReference as error:
                if not lenient:
                    raise
                without = f"{label}: {error}"[:300]
    except NoReference as error:
        return "no reference", str(error)[:300], count
    except NotImplementedError as error:
        return "declined", str(error)[:400], count
    except AssertionError as error:
        return "wrong", f"{label}: {error}"[:500], count
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{label}: {type(error).__name__}: {error} ({place.name})"
        return "error", text[:500], count
    return ("pass", "", count) if count or not without else ("no reference", without, 0)


def main() -> None:
    dtype, mode = getattr(torch, sys.argv[1]), sys.argv[2]
    most = int(sys.argv[3]) if len(sys.argv) > 3 else None
    by_name, cases = entries_of(mode)
    lenient = mode not in ("forward", "grad")
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        state, reason, count = run(itertools.islice(cases(by_name[name], dtype), most), lenient)
        print(
            json.dumps({"entry": name, "state": state, "reason": reason, "samples": count}),
            flush=True,
        )


main()
