"""Every operator that ATen composes for any device, called on ocl with arguments made from its
schema, with the fallback off.

usage: schemas.py [--empty] [--only REGEX] [--jobs N] [--outs]

Composed operators may enter a table of kernels that only PyTorch's own devices have ("INTERNAL
ASSERT FAILED ... DispatchStub: missing kernel ... please report a bug to PyTorch"), or read a
tensor's memory on the host, which ends the process. Both are failures; any other exception is an
answer. --empty gives tensors without elements, so that no kernel is compiled: what enters a table
is found, what reads memory is not. The exit status is 1 where an operator failed.
"""

from __future__ import annotations

import argparse
import json
import queue
import re
import sys
import threading
from typing import Any

import sweeping

INTERNAL = re.compile("INTERNAL ASSERT|DispatchStub|report a bug|missing kernel")
# Operators of other makers' tensors and libraries, of tests, and of files.
ELSEWHERE = re.compile(
    "sparse|quant|mkldnn|cudnn|cufft|miopen|fbgemm|jagged|nested|nnpack|cuda|_copy$|_to_copy|from_file|"
    "_test_|_xla_|wait|sleep"
)
# Asserts by which ATen tells callers of internal operators that an argument has another type; they
# are the same on the CPU.
ARGUMENTS = {
    "_batch_norm_impl_index_backward",
    "_conj",
    "_is_all_true",
    "_is_any_true",
    "_linalg_check_errors",
    "unsafe_split",
    "_thnn_fused_lstm_cell_backward",
}
# Crash on the CPU, too, where what they expect is not given.
CRASH_EVERYWHERE = {
    "_chunk_cat",
    "_chunk_cat.out",
    "_thnn_differentiable_lstm_cell_backward",
    "_thnn_differentiable_gru_cell_backward",
    "_thnn_fused_gru_cell.out",
    "_thnn_fused_gru_cell_backward.out",
    "_thnn_fused_lstm_cell.out",
    "_thnn_fused_lstm_cell_backward_impl.out",
}
# Kinds of tensors by attempt: dtype and number of dimensions, all of the same sizes.
KINDS = [
    ("float32", 2),
    ("float32", 1),
    ("float32", 4),
    ("int64", 2),
    ("float32", 3),
    ("bool", 2),
    ("complex64", 2),
    ("float32", 0),
    ("int64", 1),
]
INDICES = {"index", "indices", "target", "ind", "offsets", "tgt"}


def names(outs: bool) -> list[str]:
    import torch

    found = set()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if (
            name == schema.name
            or ELSEWHERE.search(name)
            or (any(a.is_out for a in schema.arguments) and not outs)
        ):
            continue
        full = schema.name + "." * bool(schema.overload_name) + schema.overload_name
        try:
            has = torch._C._dispatch_has_kernel_for_dispatch_key
            composed = has(full, "CompositeExplicitAutograd") or has(
                full, "CompositeImplicitAutograd"
            )
        except RuntimeError:  # an operator of TorchScript alone
            continue
        if (
            composed
            and name not in ARGUMENTS
            and full.removeprefix("aten::") not in CRASH_EVERYWHERE
        ):
            found.add(full.removeprefix("aten::"))
    return sorted(found)


def tensor(kind: tuple[str, int], size: int) -> Any:
    import torch

    dtype, dim = kind
    return torch.ones([size] * dim, device="ocl").to(getattr(torch, dtype))


def number(name: str, attempt: int) -> int:
    """An int: what its name asks for, else some small number."""
    import torch

    types = {
        "dtype": torch.float32,
        "layout": torch.strided,
        "memory_format": torch.contiguous_format,
    }
    named = {**types, "dim": 0, "dim0": 0, "dim1": 1}
    return named.get(name, (1, 2, 0, 3)[attempt % 4])


def value(argument: Any, attempt: int, size: int) -> Any:
    """Something of the argument's type; each attempt takes other tensors and numbers."""
    import torch

    kind, name, text = KINDS[attempt], argument.name, str(argument.type)
    optional = text.startswith("Optional[")
    text = text[9:-1] if optional else text
    if name == "device":
        return torch.device("ocl")
    if optional and (attempt % 2 == 0 or name in ("layout", "pin_memory", "generator")):
        return None
    count = argument.N or (1 if name in ("dim", "dims") else 2)
    if text == "Tensor":
        return tensor(("int64", kind[1]) if name in INDICES else kind, size)
    if text.startswith("List[Tensor]"):
        return [tensor(kind, size), tensor(kind, size)]
    made = {
        "List[Optional[Tensor]]": lambda: [tensor(("int64", 1), size)],
        "bool": lambda: bool(attempt // 2 % 2),
        "List[bool]": lambda: [True] * (argument.N or 3),
        "float": lambda: 0.5,
        "List[float]": lambda: [1.0] * count,
        "number": lambda: 1,
        "complex": lambda: 1,
        "List[number]": lambda: [1, 1],
        "str": lambda: "sum",
    }
    if text in made:
        return made[text]()
    if text in ("int", "SymInt"):
        return number(name, attempt)
    if text in ("List[int]", "List[SymInt]"):
        return [
            {"padding": 0, "dilation": 1, "stride": 1, "pad": 1, "dim": 0, "dims": 0}.get(
                name, size
            )
        ] * count
    return None


def answer(name: str, size: int) -> str:
    """The internal error that an attempt met; empty if none did."""
    import torch

    base, _, overload = name.partition(".")
    call = getattr(getattr(torch.ops.aten, base), overload or "default")
    for attempt in range(len(KINDS)):
        try:
            given = {a.name: value(a, attempt, size) for a in call._schema.arguments}
            call(
                *[given[a.name] for a in call._schema.arguments if not a.kwarg_only],
                **{a.name: given[a.name] for a in call._schema.arguments if a.kwarg_only},
            )
        except Exception as error:
            if INTERNAL.search(str(error)):
                return f"{KINDS[attempt]}: {' '.join(str(error).split())}"[:400]
    return ""


def work(size: int) -> None:
    """A worker: names come in, answers go out."""
    import torch
    import torch_ocl  # noqa: F401  registers the device

    torch.ones(1, device="ocl").sum().item()
    print("ready", flush=True)
    for line in sys.stdin:
        print("answer " + json.dumps(answer(line.strip(), size)), flush=True)


class Worker:
    def __init__(self, size: int) -> None:
        self.process = sweeping.start_worker(
            __file__, "--work", str(size), OCLTENSOR_ENABLE_FALLBACK="0"
        )

    def ask(self, name: str) -> str:
        timer = threading.Timer(120, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:  # operators may print
                if line.startswith("answer "):
                    return json.loads(line[7:])
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        return f"the process ended: {self.process.wait()}"

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


def main() -> int:
    p = sweeping.parser(__doc__)
    p.add_argument("--empty", action="store_true", help="tensors without elements")
    p.add_argument(
        "--outs",
        action="store_true",
        help="the out forms, too, most of which are generated from the others",
    )
    p.add_argument("--only", default="", help="operators that match this regular expression")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.work is not None:
        work(options.work)
        return 0
    todo: queue.Queue[str] = queue.Queue()
    for name in names(options.outs):
        if re.search(options.only, name):
            todo.put(name)
    total, failed = todo.qsize(), {}

    def serve() -> None:
        worker = Worker(0 if options.empty else 2)
        while True:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                break
            if text := worker.ask(name):
                failed[name] = text
            if worker.process.poll() is not None:
                worker = Worker(0 if options.empty else 2)
        worker.close()

    sweeping.in_threads(serve, options.jobs)
    for name, text in sorted(failed.items()):
        print(f"  {name}: {text}")
    print(f"{total} operators, {len(failed)} failed")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
