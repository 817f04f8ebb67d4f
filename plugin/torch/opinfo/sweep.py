"""PyTorch's test databases on ocl against the CPU, in crash-isolated processes, without fallback.

usage: sweep.py [--mode MODE] [--dtype float32,int64,bool] [--only REGEX] [--samples N] [--jobs N]
[--timeout S] [--json FILE] [--fresh]

MODE: op_db's forward results, its gradients (grad, or --grad), results and gradients of tensors
with gaps (noncontiguous), out= tensors (out), in-place methods (inplace), forward-mode derivatives
(forward-mode), second gradients (second), PyTorch's checks by differences (gradcheck,
gradgradcheck; for float64 and complex128), results through torch.compile (compiled); module_db
(module); optim_db (optimizer).

Results are kept in FILE and a second run goes on where the first stopped (--fresh begins anew). The
end prints the totals per dtype: pass, declined (with the reason), wrong, error, crashed, hung.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable

import sweeping

HERE = pathlib.Path(__file__).resolve().parent
STATES = ("pass", "declined", "wrong", "error", "crashed", "hung", "no reference")


OF_OP_DB = ("forward", "grad", "noncontiguous", "out", "inplace", "forward-mode", "second")
MODES = (*OF_OP_DB, "gradcheck", "gradgradcheck", "compiled", "module", "optimizer")
# In a process of its own: the entries of a mode, and the dtypes that each has on the CPU.
LISTING = """
import json, sys
mode = sys.argv[1]
def names(dtypes):
    return sorted(str(d)[6:] for d in dtypes)
if mode == "module":
    from torch.testing._internal.common_modules import module_db
    found = {m.name: names(m.dtypes) for m in module_db}
elif mode == "optimizer":
    from torch.testing._internal.common_optimizers import optim_db
    some = ["float32", "float64", "complex64", "float16", "bfloat16"]
    found = {o.name: some for o in optim_db}
else:
    from torch.testing._internal.common_methods_invocations import op_db
    has = {
        "grad": lambda op: op.supports_autograd,
        "out": lambda op: op.supports_out,
        "inplace": lambda op: op.get_inplace() is not None,
        "forward-mode": lambda op: op.supports_forward_ad,
        "second": lambda op: op.supports_gradgrad,
        "gradcheck": lambda op: op.supports_autograd,
        "gradgradcheck": lambda op: op.supports_gradgrad,
    }.get(mode, lambda op: True)
    found = {op.full_name: names(op.supported_dtypes("cpu")) for op in op_db if has(op)}
print(json.dumps(found))
"""


def list_entries(mode: str) -> dict[str, list[str]]:
    """Dtypes by entry names, asked of a process of its own so that a broken device cannot stop the
    sweep."""
    env = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    text = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LISTING, mode],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(text.stdout.splitlines()[-1])


def why_no_device() -> str:
    """Empty if a process can use ocl: else every entry would count as crashed."""
    code = "import torch, torch_ocl; torch.ones(1, device='ocl')"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    return run.stderr.strip().splitlines()[-1] if run.returncode else ""


class Worker:
    def __init__(self, dtype: str, mode: str, samples: str) -> None:
        env = dict(
            os.environ,
            OCLTENSOR_ENABLE_FALLBACK="0",
            OMP_NUM_THREADS="1",
            OCLTENSOR_LOG_LEVEL="error",
        )
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "worker.py"), dtype, mode, samples],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.errors: collections.deque[str] = collections.deque(maxlen=5)
        threading.Thread(target=self._drain, daemon=True).start()
        self.process.stdout.readline()

    def _drain(self) -> None:
        for line in self.process.stderr:
            self.errors.append(line.rstrip())

    def run(self, entry: str, timeout: float) -> dict:
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(entry + "\n")
            self.process.stdin.flush()
            while line := self.process.stdout.readline():
                if line.startswith('{"entry"'):
                    return json.loads(line)
        except BrokenPipeError:
            pass
        finally:
            fired = not timer.is_alive()
            timer.cancel()
        code = self.process.wait()
        if fired:
            return {
                "entry": entry,
                "state": "hung",
                "reason": f"no answer after {timeout:.0f} s",
                "samples": 0,
            }
        return {
            "entry": entry,
            "state": "crashed",
            "reason": f"exit {code}: {' | '.join(self.errors)}"[:500],
            "samples": 0,
        }

    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        if self.alive():
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()


def sweep(
    dtype: str,
    mode: str,
    entries: list[str],
    options: argparse.Namespace,
    results: dict,
    save: Callable[[], None],
) -> None:
    todo: queue.Queue[str] = queue.Queue()
    for entry in entries:
        if entry not in results:
            todo.put(entry)
    total, lock = len(entries), threading.Lock()

    def serve() -> None:
        worker = None
        while True:
            try:
                entry = todo.get_nowait()
            except queue.Empty:
                break
            if worker is None or not worker.alive():
                worker = Worker(dtype, mode, str(options.samples))
            answer = worker.run(entry, options.timeout)
            with lock:
                results[entry] = {k: answer[k] for k in ("state", "reason", "samples")}
                counts = collections.Counter(r["state"] for r in results.values())
                shown = "  ".join(f"{s} {counts[s]}" for s in STATES if counts[s])
                end = "\r" if sys.stderr.isatty() else "\n"
                if sys.stderr.isatty() or len(results) % 50 == 0:
                    print(
                        f"{dtype} {mode}: {len(results)}/{total}  {shown}    ",
                        end=end,
                        file=sys.stderr,
                        flush=True,
                    )
                if len(results) % 20 == 0:
                    save()
        if worker is not None:
            worker.close()

    sweeping.in_threads(serve, options.jobs)
    save()


def main() -> int:
    p = sweeping.parser(__doc__)
    p.add_argument("--dtype", default="float32", help="comma-separated")
    p.add_argument("--mode", default="forward", choices=MODES)
    p.add_argument("--grad", action="store_true", help="short for --mode grad")
    p.add_argument("--samples", type=int, default=100000, help="at most so many of an entry")
    p.add_argument("--only", default="", help="entries that match this regular expression")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--timeout", type=float, default=900.0, help="seconds for one entry")
    p.add_argument("--json", type=pathlib.Path, default=pathlib.Path("build/opinfo.json"))
    p.add_argument("--fresh", action="store_true")
    p.add_argument(
        "--may-decline",
        help="entries that match may be declined; any other declined entry is a failure, too",
    )
    p.add_argument(
        "--list",
        default="",
        help="print the entries in this state (declined, wrong, error, crashed, hung) with reasons",
    )
    options = p.parse_args()
    if why := why_no_device():
        p.error(f"the device ocl cannot be used: {why}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    every = (
        {} if options.fresh or not options.json.exists() else json.loads(options.json.read_text())
    )
    mode = "grad" if options.grad else options.mode
    entries = list_entries(mode)
    bad = 0
    for dtype in options.dtype.split(","):
        chosen = [
            n
            for n, dtypes in sorted(entries.items())
            if dtype in dtypes and re.search(options.only, n)
        ]
        results = every.setdefault(f"{mode} {dtype}", {})
        if options.only:
            for name in chosen:
                results.pop(name, None)
        sweep(
            dtype,
            mode,
            chosen,
            options,
            results,
            lambda: options.json.write_text(json.dumps(every, indent=0, sort_keys=True)),
        )
        counts = collections.Counter(results[n]["state"] for n in chosen)
        print(
            f"{mode} {dtype}: {len(chosen)} entries: "
            + ", ".join(f"{s} {counts[s]}" for s in STATES)
        )
        if options.may_decline is not None:
            bad += sum(
                results[n]["state"] == "declined" and not re.search(options.may_decline, n)
                for n in chosen
            )
        bad += counts["wrong"] + counts["error"] + counts["crashed"] + counts["hung"]
        for name in chosen:
            if options.list and results[name]["state"] in options.list.split(","):
                print(f"  {results[name]['state']:9} {name}: {results[name]['reason']}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
