"""Whole models on ocl with the fallback off, against the CPU; each in a process of its own.

usage: python -m models.run [NAME ...] [--timeout S] [--jobs N]      (in plugin/torch/tests)

Per model: the largest error of the evaluated outputs, the gradients of the training loss and the
parameters after optimizer steps, each relative to the largest value, and the CPU's own float32
error beside it; or the operator that is missing. Every number is measured against the CPU in
float64, so the tolerance need not be guessed per model:

- outputs and gradients may be EIGHT times as far from float64 as the CPU's float32 is, for sums in
  another order differ by small factors, not by powers of ten; and FLOOR is always allowed, where
  the CPU happens to be lucky: a few hundred roundings of 2^-24.
- a gradient is measured against its tensor's largest value, but never against less than a
  thousandth of the model's largest one: the bias of a convolution before BatchNorm has a gradient
  of exactly zero, and what float32 leaves there is noise on both sides.
- CEILING bounds that allowance for gradients: a CPU that is itself lost excuses nothing.
- the derivative of a ReLU or a maximum jumps, and among a million inputs one may lie within
rounding
  of the jump; then all gradients before it differ by a thousandth. A wrong kernel is wrong with all
  weights, so gradients that fail are measured with up to DRAWS draws; the table says which passed.
  Where none does (ResNet-50: always some input at a jump, on the CPU too), the device computes in
  float64, where roundings reach no jump, and must agree to DOUBLE; the table shows that number.
- compiled, a model must be compiled as a whole, its graph cut no more often than on the CPU; under
  autocast its gradients may be off by TWICE as much as eager mode's, in one of up to DRAWS draws:
  rounded to eight bits, an input of a ReLU that lies at the jump is common (MobileNetV3's squeezed
  channels: eager mode, the CPU and its compiler are off by the same, each with other draws).
- optimizers start from equal gradients on both devices, because Adam divides a gradient by its own
  size, noise included. What remains is the arithmetic of a step: 4 ulp of the largest parameter.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

EIGHT = 8
DRAWS = 3
CEILING = 1e-3
DOUBLE = 1e-9
ROUGH, TWICE = 2e-2, 2
FLOOR = {"forward": 2e-5, "gradient": 1e-4}
STEP = 4 * 2**-23
FAMILIES = (
    *("resnet18", "mobilenetv3", "convnext", "vit", "unet", "bert", "gpt2", "llama", "t5"),
    *("whisper", "mixtral", "mamba", "lstm", "gat", "dit", "detector"),
)
"""Those that are compiled."""
OPTIMIZERS = {
    "sgd": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3},
    "adam": {"lr": 1e-3, "amsgrad": True},
    "adamw": {"lr": 1e-3, "weight_decay": 0.1},
}


def place(value: Any, device: str, wide: bool) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device).double() if wide and value.is_floating_point() else value.to(device)


def compute(
    case: Any, device: str, wide: bool = False, compiled: bool = False, autocast: bool = False
) -> tuple[list, dict, Any]:
    """(evaluated outputs, gradients by name, the model that has them) on `device`."""
    import torch

    from .case import results_of

    model = copy.deepcopy(case.model).to(device)
    model = model.double() if wide else model
    run = torch.compile(model) if compiled else model
    inputs = {k: place(v, device, wide) for k, v in case.inputs.items()}
    outputs: list[torch.Tensor] = []
    if not autocast:
        with torch.no_grad():
            model.eval()
            outputs = [t.double().cpu() for t in results_of(run(**inputs))]
    model.train()
    with torch.autocast(device, torch.bfloat16, enabled=autocast):
        loss = case.loss(run(**inputs))
    loss.backward()
    grads = {n: p.grad.double().cpu() for n, p in model.named_parameters() if p.grad is not None}
    return outputs, grads, model


def distance(got: list, want: list, least: float = 1e-30) -> float:
    import torch

    assert len(got) == len(want), f"{len(got)} tensors instead of {len(want)}"
    worst = 0.0
    for a, b in zip(got, want):
        assert a.shape == b.shape, f"shape {tuple(a.shape)} instead of {tuple(b.shape)}"
        same = torch.isfinite(b) == torch.isfinite(a)
        assert bool(same.all()), "a NaN or infinity that the CPU has not, or the other way round"
        if b.numel():
            error = (a - b).nan_to_num(0, 0, 0).abs().max().item()
            worst = max(worst, error / max(b.nan_to_num(0, 0, 0).abs().max().item(), least))
    return worst


def steps(ours: Any, theirs: Any) -> float:
    """Largest relative error of the parameters after two steps of each optimizer."""
    import torch

    worst = 0.0
    for name, options in OPTIMIZERS.items():
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
        pair = []
        for model in (ours, theirs):
            params = dict(model.named_parameters())
            for key, value in theirs.named_parameters():
                g = value.grad
                params[key].grad = None if g is None else g.detach().clone().to(params[key].device)
            pair.append((kind(params.values(), **options), params))
        for optimizer, _ in pair:
            optimizer.step()
            optimizer.step()
        (_, a), (_, b) = pair
        worst = max(worst, distance([a[k].detach().cpu() for k in b], [b[k].detach() for k in b]))
        with torch.no_grad():
            for key, value in b.items():
                a[key].copy_(value)
    return worst


def breaks(case: Any, device: str) -> dict[str, int]:
    """Where Dynamo cuts the model's graph, and how often."""
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    model = copy.deepcopy(case.model).to(device).train()
    inputs = {k: place(v, device, False) for k, v in case.inputs.items()}
    torch.compile(model, backend="eager")(**inputs)
    return dict(counters["graph_break"])


def compiled_alone(case: Any, exact: list, keys: list, least: float) -> dict[str, Any]:
    """What is asked of a compiled model only."""
    import torch

    report = torch.ocl.compile_report()
    found = {
        "calls": {name: why for graph in report for name, why in graph.calls.items()},
        "uncompiled": [graph.eager for graph in report if graph.eager],
        "breaks": breaks(case, "ocl") == breaks(case, "cpu"),
    }
    apart = []
    for compiled in (True, False):
        torch._dynamo.reset()
        grads = compute(case, "ocl", compiled=compiled, autocast=True)[1]
        apart.append(distance([grads[k] for k in keys], exact, least))
    return {**found, "autocast": apart}


def run_one(name: str, compiled: bool = False) -> dict[str, Any]:
    for draw in range(1, DRAWS + 1):
        result = measure(name, draw, compiled)
        bad = judge(result)
        if not all(text.startswith("gradient") for text in bad) or not bad:
            break
    return result


def measure(name: str, draw: int, compiled: bool = False) -> dict[str, Any]:
    import torch
    import torch_ocl  # noqa: F401  registers the device

    from . import table

    torch.manual_seed(6 + draw)
    case = table.BUILDERS[name]()
    exact, exact_grads, _ = compute(case, "cpu", wide=True)
    cpu, cpu_grads, cpu_model = compute(case, "cpu")
    out, grads, model = compute(case, "ocl", compiled=compiled)
    assert grads.keys() == cpu_grads.keys(), "other parameters have gradients"
    keys = list(cpu_grads)
    least = 1e-3 * max(g.abs().max().item() for g in exact_grads.values())
    wanted = [exact_grads[k] for k in keys]
    result = {
        "forward": (distance(out, exact), distance(cpu, exact)),
        "gradient": (
            distance([grads[k] for k in keys], wanted, least),
            distance([cpu_grads[k] for k in keys], wanted, least),
        ),
        "step": (steps(model, cpu_model), 0.0),
        "extra": None,
        "draw": draw,
        "double": None,
    }
    if compiled:
        result |= compiled_alone(case, wanted, keys, least)
    if draw == DRAWS and not gradient_fits(result):
        again = compute(case, "ocl", wide=True, compiled=compiled)[1]
        result["double"] = distance([again[k] for k in keys], wanted, least)
    if case.extra is not None:
        with torch.no_grad():
            both = [
                case.extra(m.eval(), {k: place(v, d, False) for k, v in case.inputs.items()}).cpu()
                for m, d in ((cpu_model, "cpu"), (model, "ocl"))
            ]
        result["extra"] = bool(torch.equal(*both))
    return result


def gradient_fits(result: dict[str, Any]) -> bool:
    ours, cpus = result["gradient"]
    return ours <= max(FLOOR["gradient"], min(EIGHT * cpus, CEILING))


def judge(result: dict[str, Any]) -> list[str]:
    bad = []
    for what, floor in FLOOR.items():
        ours, cpus = result[what]
        fits = gradient_fits(result) if what == "gradient" else ours <= max(floor, EIGHT * cpus)
        if what == "gradient" and result.get("double") is not None:
            fits = result["double"] <= DOUBLE
        if not fits:
            bad.append(f"{what} is off by {ours:.1e}, the CPU by {cpus:.1e}")
    if not result["step"][0] <= STEP:
        bad.append(f"the optimizer step is off by {result['step'][0]:.1e}")
    if result["extra"] is False:
        bad.append("generated tokens differ")
    return bad + judge_compiled(result)


def judge_compiled(result: dict[str, Any]) -> list[str]:
    bad = [f"not compiled: {why}" for why in result.get("uncompiled", ())]
    if not result.get("breaks", True):
        bad.append("the graph is cut where the CPU's is not")
    ours, eager = result.get("autocast", (0, 0))
    # Chains are rounded to eight bits at other places.
    if not ours <= max(ROUGH, TWICE * eager):
        bad.append(f"gradient under autocast is off by {ours:.1e}, eager's by {eager:.1e}")
    return bad


def describe_failure(text: str) -> str:
    missing = re.findall(r"The operator '([^']+)' is not implemented[^:]*: (.*)", text)
    if missing:
        return f"missing {missing[-1][0]}: {missing[-1][1][:200]}"
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def run_apart(
    name: str, timeout: float, compiled: bool = False
) -> tuple[str, dict[str, Any] | None, str, float]:
    """(name, result, why not, seconds)"""
    folder = pathlib.Path(__file__).resolve().parent.parent
    env = dict(os.environ, OCLTENSOR_ENABLE_FALLBACK="0", HF_HUB_OFFLINE="1")
    command = [sys.executable, "-m", "models.run", "--one", name]
    command += ["--compiled"] * compiled
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return name, None, f"no end after {timeout:.0f} s", timeout
    seconds = time.monotonic() - start
    if done.returncode == 0:
        return name, json.loads(done.stdout.splitlines()[-1]), "", seconds
    if done.returncode < 0:
        return name, None, f"signal {-done.returncode}: {done.stderr[-200:]}", seconds
    return name, None, describe_failure(done.stderr), seconds


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", help="models of the table; none: all")
    p.add_argument("--timeout", type=float, default=300, help="seconds for one model")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--one", help="run this model here and print its numbers as JSON")
    p.add_argument("--compiled", action="store_true", help="by torch.compile, and under autocast")
    options = p.parse_args()
    if options.one:
        print(json.dumps(run_one(options.one, options.compiled)))
        return 0
    from . import table

    names = options.names or (FAMILIES if options.compiled else list(table.BUILDERS))
    failures = 0
    print(f"{'model':16} {'forward':>8} {'(cpu)':>8} {'gradient':>8} {'(cpu)':>8} {'step':>8}  s")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        apart = lambda n: run_apart(n, options.timeout, options.compiled)  # noqa: E731
        for name, result, why, seconds in pool.map(apart, names):
            if result is None:
                print(f"{name:16} FAILED: {why}", flush=True)
                failures += 1
                continue
            bad = judge(result)
            failures += bool(bad)
            (f, fc), (g, gc), (s, _) = (result[k] for k in ("forward", "gradient", "step"))
            note = f"  draw {result['draw']}" if result["draw"] > 1 else ""
            if result["double"] is not None:
                note += f", float64 gradient {result['double']:.1e}"
            if result.get("calls"):
                note += f"  calls {', '.join(sorted(result['calls']))}"
            tail = note + ("  FAILED: " + "; ".join(bad) if bad else "")
            row = f"{f:8.1e} {fc:8.1e} {g:8.1e} {gc:8.1e} {s:8.1e} {seconds:3.0f}"
            print(f"{name:16} {row}{tail}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
