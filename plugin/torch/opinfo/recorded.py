"""Which of op_db's entries a graph can record (torch.ocl.graph), and how often each call copies
between host and device: what does is slow behind a GPU's queue.

usage: recorded.py [--only REGEX] [--dtype float32] [--samples N] [--backward] [--entries FILE]
[--all]

An entry is called once, then recorded, replayed, and its results compared with those of the call.
Beside op_db: operators that it leaves out (`more.py`). Prints a line per entry that cannot
be recorded, `copies to the device, copies to the host  entry: reason`, and with --all those that
copy all the same. Tables below have what CUDA's graphs refuse, too, and what else may be refused,
with reasons; any other refusal, and any replay with other results, makes the exit status 1.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import pathlib
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import sweeping
import torch
import torch_ocl  # noqa: F401  registers the device
from more import more_calls
from samples import HOST_ARGUMENTS, move, tensors
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

Call = Callable[[], Any]

# What torch.cuda.graph refuses as well: the pattern of entries, and why.
SHAPE = "the result's shape depends on values"
READ = "PyTorch's code reads a number of a tensor"
SENT = "PyTorch's code makes a tensor of a number on the host"
CHECK = "whether the decomposition succeeded is checked"
REFUSED_BY_CUDA = {
    r"^(nonzero|argwhere|masked_select|combinations|bincount|histc)$": SHAPE,
    r"^(unique|unique_consecutive|to_sparse|repeat_interleave)$": SHAPE,
    r"^(item|equal|allclose|cov|corrcoef|narrow|normal|tensor_split|istft)$": READ,
    r"^(linspace|logspace)\.tensor_overload$": READ,
    r"^nn\.functional\.(gaussian_nll_loss|ctc_loss)$": READ,
    r"^_segment_reduce\.(lengths|offsets)$": READ,
    r"^(matrix_exp|linalg\.matrix_rank|linalg\.cond)": READ,
    r"^(index_put|__getitem__)$": "a mask's elements are counted, or a list is sent",
    r"^masked\.": SENT,
    r"^to$": "a copy to another device",
    r"^(cholesky|cholesky_inverse|pinverse|norm\.nuc|svd|logdet)$": CHECK,
    r"^(svd|pca)_lowrank$": CHECK,
    r"^linalg\.(cholesky|eig|ldl_factor|lu|inv|solve|lstsq|pinv)": CHECK,
    r"^linalg\.(svd|tensorinv|tensorsolve|norm)": CHECK,
}
# With gradients, besides.
REFUSED_BACKWARD = {
    r"^(masked_fill|masked_scatter|index_fill)$": SHAPE,
    r"^(cumprod|prod)$": READ,
}
# What CUDA records, and ocl refuses: what would have to change is not ours.
PYTORCHS = {
    r"^(histogram|histogramdd)$": "CUDA has no kernel",
    r"^(max|min)\.reduction_no_dim$|^(median|nanmedian)$": "PyTorch's derivative asks whether the "
    "tensor is CUDA's, and else reads the extreme",
}


@dataclasses.dataclass
class Found:
    """What a call did: copies in each direction, why it was refused, or what its replay gave."""

    uploads: int = 0
    downloads: int = 0
    refused: str = ""
    wrong: str = ""


def values(value: Any) -> list[torch.Tensor]:
    """The results on the device: what is on the CPU, a graph neither writes nor reads."""
    return [t.detach() for t in tensors(value) if t.device.type == "ocl"]


def counted(body: Call) -> tuple[int, int, list[torch.Tensor]]:
    """Copies to the device, and to the host, of one call, and its results."""
    torch.ocl.synchronize()
    torch.ocl.profiler.reset_statistics()
    found = values(body())
    torch.ocl.synchronize()
    counts: collections.Counter[str] = collections.Counter()
    for row in torch.ocl.profiler.statistics()["copies"]:
        counts[row["name"]] += row["count"]
    return counts["copy to device"], counts["copy to host"], found


def same(mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> str:
    """What differs; empty: nothing does."""
    try:
        for a, b in zip(mine, theirs, strict=True):
            if a.layout == torch.strided:
                torch.testing.assert_close(a, b, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return ""


def examine(body: Call) -> Found:
    """Raises what the plain call raises."""
    want = [t.clone() for t in values(body())]
    uploads, downloads, again = counted(body)
    found = Found(uploads, downloads)
    is_random = bool(same(again, want))
    graph = torch.ocl.OCLGraph()
    try:
        with torch.ocl.graph(graph):
            got = values(body())
    except Exception as error:  # noqa: BLE001  the reason is the answer
        found.refused = " ".join(str(error).split())
        return found
    graph.replay()
    torch.ocl.synchronize()
    found.wrong = "" if is_random else same(got, want)
    return found


def bound(op: OpInfo, sample: SampleInput, backward: bool) -> Call:
    """The sample's call, with its arguments where they belong; with its gradients."""
    arguments = move((sample.input,), "ocl") + move(
        tuple(sample.args), "cpu" if op.name in HOST_ARGUMENTS else "ocl"
    )
    keywords = move(sample.kwargs, "ocl")
    if "device" in keywords:
        keywords["device"] = "ocl"

    def forward() -> Any:
        with torch.device("ocl"):  # constructors that name no device
            return op.op(*arguments, **keywords)

    if not backward:
        return lambda: forward()
    leaves = [t for t in tensors((arguments, keywords)) if t.requires_grad]

    def differentiable(result: Any) -> list[torch.Tensor]:
        return [t for t in tensors(result) if t.requires_grad]

    gradients = [
        torch.linspace(0.5, 1.5, t.numel(), dtype=t.real.dtype).reshape(t.shape).to("ocl", t.dtype)
        for t in differentiable(forward())
    ]

    def both() -> Any:
        outs = differentiable(forward())
        if not outs:
            return []
        return [
            g
            for g in torch.autograd.grad(outs, leaves, gradients, allow_unused=True)
            if g is not None
        ]

    return both


def calls(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Iterator[Call]]]]:
    """Entries: their names and calls."""
    dtype = getattr(torch, options.dtype)
    chosen = None
    if options.entries is not None:
        lines = options.entries.read_text().splitlines()
        chosen = "|".join(line for line in lines if line and line[0] != "#")
    for op in op_db:
        backward = options.backward and op.supports_autograd
        if (
            (chosen is not None and not re.fullmatch(chosen, op.full_name))
            or not op.supports_dtype(dtype, "cpu")
            or op.name.startswith("jiterator")
            or (options.backward and not backward)
        ):
            continue

        def of_entry(op: OpInfo = op, backward: bool = backward) -> Iterator[Call]:
            samples = op.sample_inputs("cpu", dtype, requires_grad=backward)
            for sample in itertools.islice(samples, options.samples):
                yield bound(op, sample, backward)

        yield op.full_name, of_entry
    for name, make in more_calls(options.backward).items():
        yield name, lambda make=make: iter([make()])


UNINITIALISED = r"^(new_)?empty"  # results have any values


def worst(of_entry: Callable[[], Iterator[Call]]) -> Found | None:
    """Of an entry's calls the one that is refused, wrong, or copies most; None: none runs."""
    found: list[Found] = []
    bodies = of_entry()
    while True:
        try:
            body = next(bodies, None)
            if body is None:
                break
            found.append(examine(body))
        except Exception:  # noqa: BLE001  declined or wrong: sweep.py judges that
            continue
    return max(
        found,
        key=lambda f: (bool(f.wrong), bool(f.refused), f.uploads + f.downloads),
        default=None,
    )


def without_a_seed(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls of random operators, which op_db seeds: a recording refuses that."""
    return op(*args, **kwargs)


def reason(name: str, backward: bool) -> str:
    reasons = REFUSED_BY_CUDA | PYTORCHS | (REFUSED_BACKWARD if backward else {})
    return next((why for pattern, why in reasons.items() if re.search(pattern, name)), "")


def main() -> int:
    parser = sweeping.parser_of_entries(__doc__)
    parser.add_argument("--backward", action="store_true", help="forward and gradients together")
    parser.add_argument(
        "--entries", type=pathlib.Path, help="a file of expressions, one a line, of op_db's entries"
    )
    parser.add_argument("--all", action="store_true", help="also what copies, and is recorded")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    invocations.wrapper_set_seed = without_a_seed
    counts: collections.Counter[str] = collections.Counter()
    bad = 0
    with (
        tempfile.NamedTemporaryFile(suffix=".json") as file,
        torch.ocl.profiler.profile(path=file.name),
    ):
        for name, of_entry in calls(options):
            if not re.search(options.only, name):
                continue
            found = worst(of_entry)
            if found is None:
                continue
            if re.search(UNINITIALISED, name):
                found.wrong = ""
            why = reason(name, options.backward)
            state = (
                "with other results"
                if found.wrong
                else "recorded"
                if not found.refused
                else "refused with a reason"
                if why
                else "refused"
            )
            counts[state] += 1
            bad += state in ("refused", "with other results")
            copies = found.uploads + found.downloads
            if found.refused or found.wrong or (options.all and copies):
                text = found.wrong or why or found.refused or "recorded"
                line = f"{found.uploads:3d} {found.downloads:3d}  {name}: {text}"
                print(f"{state}: {line}"[:200], flush=True)
    total = sum(counts.values())
    print(f"{total} entries: " + ", ".join(f"{n} {state}" for state, n in sorted(counts.items())))
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
