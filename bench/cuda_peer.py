"""Times the bench's rows with PyTorch on CUDA, in a process of its own, as a peer for a GPU's OpenCL device.

usage: cuda_peer.py OUT.json [FAMILY...]        then: bench.py --peer-json OUT.json ...
"""

from __future__ import annotations

import json
import sys

import torch

import cases


def bind(case: cases.Case):
    """The row's ATen operator with CUDA tensors, called through its out-variant."""
    name, overload = case.op.split(".")
    op = getattr(getattr(torch.ops.aten, name), overload)
    inputs = [t.cuda() for t in case.inputs]
    values = [(inputs[a.index].t() if a.transposed else inputs[a.index]) if isinstance(a, cases.Input) else a
              for a in case.args]
    positional, named = [], {}
    inputs_only = [a for a in op._schema.arguments if not (a.is_out or (a.alias_info and a.alias_info.is_write and a.kwarg_only))]
    for argument, value in zip(inputs_only, values):
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    outs = [a.name for a in op._schema.arguments if a not in inputs_only]
    for out, (shape, dtype) in zip(outs, case.outputs):
        named[out] = torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")
    return lambda: op(*positional, **named)


def measure(run) -> float:
    """Microseconds of one call, from events around a queue that never runs dry; best of seven."""
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    best = float("inf")
    count = 20
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) / count * 1e3)
    return best


def main() -> None:
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    result = {}
    for family in sys.argv[2:] or list(cases.FAMILIES):
        for case in cases.FAMILIES[family]():
            try:
                result[case.name] = measure(bind(case))
            except Exception as e:  # a row without a CUDA form has no peer
                print(f"{case.name}: {e}", file=sys.stderr)
            torch.cuda.empty_cache()
    with open(sys.argv[1], "w") as f:
        json.dump({"peer": f"torch {torch.__version__} CUDA, {torch.cuda.get_device_name()}", "us": result}, f, indent=1)


main()
