"""Operators of a plugin side by side with PyTorch on the CPU, in one process, in alternating samples.

usage: bench.py --plugin PATH [FAMILY...] [--threads N] [--samples N] [--json FILE] [--markdown FILE] [--trace FILE]

Every result is compared with PyTorch's before it is timed. A sample is repeated until it lasts long enough; the table
shows medians, the ratio peer time / our time (above 1: faster than PyTorch), its spread over the samples, and for
memory-bound rows the share of the machine's copy bandwidth, measured in the same run. --trace runs every row three times
more at the end and writes them as a trace for https://ui.perfetto.dev, a range for each row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("families", nargs="*", help="pointwise reduce matmul conv rows; default: all")
    p.add_argument("--plugin", required=True)
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--samples", type=int, default=9)
    p.add_argument("--only", default="", help="rows whose name contains this text")
    p.add_argument("--peer-json", default="", help="times of another peer, from cuda_peer.py, instead of torch's CPU")
    p.add_argument("--json", default="")
    p.add_argument("--markdown", default="")
    p.add_argument("--trace", default="", metavar="FILE")
    return p.parse_args()


def main() -> int:
    options = parse()
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    import numpy as np
    import torch

    import cases
    from tensor_backend import Plugin

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    plugin = Plugin(options.plugin, options.device)
    peer_times = json.load(open(options.peer_json)) if options.peer_json else None
    peer_name = peer_times["peer"] if peer_times else f"torch {torch.__version__} CPU, {options.threads} threads"
    print(f"ours: {plugin.device_name()}   peer: {peer_name}\n")

    def sample(body, finish, seconds: float) -> float:
        """Time of one repetition, from as many as fill `seconds`; one unmeasured call first."""
        body()
        finish()
        begin = time.perf_counter()
        body()
        finish()
        once = time.perf_counter() - begin
        count = max(1, min(1000, int(seconds / max(once, 1e-7))))
        begin = time.perf_counter()
        for _ in range(count):
            body()
        finish()
        return (time.perf_counter() - begin) / count

    def prepare(case: cases.Case):
        """A function that enqueues the case's operator, its outputs, and all that is to be freed."""
        inputs = [plugin.upload(t.numpy()) for t in case.inputs]
        outputs = [plugin.empty(shape, dtype) for shape, dtype in case.outputs]
        poison = np.full(max(1, int(np.prod(case.outputs[0][0]))), 77, case.outputs[0][1])
        seed = plugin.upload(poison)
        plugin.copy(outputs[0], type(outputs[0])(seed.address, outputs[0].shape, outputs[0].strides, outputs[0].dtype))
        bound = []
        for a in case.args:
            if isinstance(a, cases.Input):
                t = inputs[a.index]
                a = t.transpose() if a.transposed else t
            bound.append(a)
        return plugin.prepare(case.op, bound, outputs), outputs, [*inputs, *outputs, seed]

    def trace(measured: list[cases.Case]) -> None:
        plugin.start_trace(options.trace)
        for case in measured:
            run, _, owned = prepare(case)
            plugin.push_range(case.name)
            for _ in range(3):
                run()
            plugin.synchronize()
            plugin.pop_range()
            plugin.free(*owned)
        plugin.stop_trace()
        print(f"trace: {options.trace}")

    def measure(case: cases.Case) -> dict:
        run, outputs, owned = prepare(case)
        run()
        got, want = plugin.download(outputs[0]), case.peer().numpy()
        scale = float(np.abs(want).max()) or 1.0
        error = float(np.abs(got.astype(np.float64) - want).max()) / scale
        wrong = not error <= case.tolerance
        ours, theirs = [], []
        for _ in range(options.samples):
            ours.append(sample(run, plugin.synchronize, 0.05))
            theirs.append(peer_times["us"].get(case.name, float("nan")) * 1e-6 if peer_times
                          else sample(case.peer, lambda: None, 0.05))
        ratios = sorted(t / o for o, t in zip(ours, theirs))
        plugin.free(*owned)
        mine, peer = statistics.median(ours), statistics.median(theirs)
        return {"family": case.family, "name": case.name, "ours_us": mine * 1e6, "peer_us": peer * 1e6,
                "ratio": peer / mine, "ratio_low": ratios[0], "ratio_high": ratios[-1],
                "gflops": case.flops / mine * 1e-9, "gbytes": case.bytes / mine * 1e-9, "error": error, "wrong": wrong}

    chosen = options.families or list(cases.FAMILIES)
    results, bandwidth, failed = [], 0.0, False
    measured: list[cases.Case] = []
    lines = ["| row | ours us | peer us | ratio (low-high) | GFLOP/s or GB/s | error |", "|---|---|---|---|---|---|"]
    for family in chosen:
        if family not in cases.FAMILIES:
            sys.exit(f"bench: there is no family '{family}'; there are {', '.join(cases.FAMILIES)}")
        for case in cases.FAMILIES[family]():
            if options.only not in case.name:
                continue
            try:
                r = measure(case)
            except RuntimeError as e:
                print(f"{case.name:42} {e}", flush=True)
                lines.append(f"| {case.name} | not run: {str(e).splitlines()[0]} | | | | |")
                failed = True
                continue
            results.append(r)
            measured.append(case)
            if case.name.startswith("copy"):
                bandwidth = r["gbytes"]
            rate = f"{r['gflops']:.0f} GFLOP/s" if case.flops else f"{r['gbytes']:.1f} GB/s"
            share = f" ({r['gbytes'] / bandwidth:.0%} of copy)" if bandwidth and case.bytes else ""
            flag = "  WRONG" if r["wrong"] else ""
            failed |= r["wrong"]
            print(f"{case.name:42} {r['ours_us']:10.1f} us  peer {r['peer_us']:10.1f}  x{r['ratio']:.2f} "
                  f"({r['ratio_low']:.2f}-{r['ratio_high']:.2f})  {rate}{share}  error {r['error']:.1e}{flag}", flush=True)
            lines.append(f"| {case.name} | {r['ours_us']:.1f} | {r['peer_us']:.1f} | {r['ratio']:.2f} "
                         f"({r['ratio_low']:.2f}-{r['ratio_high']:.2f}) | {rate}{share} | {r['error']:.1e}{flag} |")
    if options.trace:
        trace(measured)
    meta = {"device": plugin.device_name(), "peer": peer_name, "threads": options.threads,
            "machine": platform.processor() or platform.machine(), "command": " ".join(sys.argv[1:])}
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"meta": meta, "rows": results}, f, indent=1)
    if options.markdown:
        with open(options.markdown, "a") as f:
            f.write(f"\n## {meta['device']}, peer: {meta['peer']}\n\n" + "\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
