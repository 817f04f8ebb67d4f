"""Do fake tensors promise what ocl gives, and does the CPU give the same? Shapes, dtypes and
strides of op_db's results, real and within FakeTensorMode.

usage: strides.py [--cpu] [--grad] [--only REGEX] [--dtype float32] [--samples N] [--jobs N]
[--list] [--entries FILE]

Compilers trace with fake tensors and believe their strides. Each sample runs as it is, with its
tensors of 4 and 5 dimensions in channels_last, and with all of them in transposed memory. Strides
of dimensions of size 1 and of empty tensors mean nothing. An entry is "theirs" where PyTorch's own
CPU breaks the same promise in the same way: the promise is wrong. The exit status is 1 where one is
broken by ocl alone.

With --cpu, results on ocl are compared with the CPU's instead, also for expanded and sliced
tensors; with --grad, gradients of the samples' tensors as well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import warnings
from typing import Any

import sweeping
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

LAYOUTS = ("plain", "channels_last", "transposed")
MORE_LAYOUTS = (*LAYOUTS, "expanded", "sliced")
# Results whose shape or type depends on numbers, or that a fake tensor has no answer for.
NO_PROMISE = re.compile(
    "^(nonzero|masked_select|unique|bincount|empty_strided|new_empty_strided|equal|item|allclose)"
)
# What is wrong with the promises that the CPU breaks, too.
REASONS = {
    "copysign|div.floor_rounding|floor_divide|heaviside|ldexp|logaddexp": "the fake result comes "
    "from a formula of several "
    "operators, whose operands broadcast in another order",
    "nn.functional.nll_loss": "the fake result of images without a reduction follows the input",
    "normal": "the fake result follows the mean, the real one is drawn into a contiguous tensor",
}
# What ocl alone breaks, on purpose.
OURS = {
    "native_batch_norm": "in evaluation no statistics are saved, as on the CPU; "
    "fake tensors of other devices promise CUDA's",
    "_native_batch_norm_legit": "the same",
}


def laid_out(value: Any, layout: str, device: str) -> Any:
    """The sample's value with every tensor on the device, in the layout."""
    import torch

    if isinstance(value, torch.Tensor):
        moved = value.detach().to(device)
        if layout == "plain" and value.layout == torch.strided:
            count = value.untyped_storage().nbytes() // value.element_size()
            if not value.is_conj() and not value.is_neg():
                storage = value.detach().as_strided((count,), (1,), 0).clone().to(device)
                return storage.as_strided(value.shape, value.stride(), value.storage_offset())
        if layout == "channels_last" and value.dim() in (4, 5):
            return moved.contiguous(
                memory_format=torch.channels_last if value.dim() == 4 else torch.channels_last_3d
            )
        if layout == "transposed" and value.dim() > 1:
            order = list(range(value.dim()))[::-1]
            return moved.permute(order).contiguous().permute(order)
        if layout == "expanded" and value.dim() > 1 and value.size(0) > 1:
            return moved[:1].expand(value.shape)
        if layout == "sliced" and value.dim() > 0:
            return torch.stack([moved, moved], -1).flatten(-2)[..., ::2]
        return moved
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, dict):
        return {k: laid_out(v, layout, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        moved = [laid_out(v, layout, device) for v in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    return value


def describe(value: Any) -> list[tuple]:
    """(shape, dtype, strides that matter) of each tensor in a result."""
    import torch

    result = []
    for t in torch.utils._pytree.tree_leaves(value):
        if isinstance(t, torch.Tensor) and t.layout == torch.strided:
            matter = (
                [s if n > 1 else 0 for n, s in zip(t.shape, t.stride(), strict=True)]
                if t.numel()
                else []
            )
            result.append((tuple(t.shape), str(t.dtype)[6:], tuple(matter)))
    return result


def results(op: OpInfo, sample: SampleInput, layout: str, device: str) -> Any:
    """(real, fake) descriptions."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    host = "cpu" if op.name == "tensor_split" else device
    args = (laid_out(sample.input, layout, device), *laid_out(tuple(sample.args), layout, host))
    kwargs = laid_out(sample.kwargs, layout, device)
    if "device" in kwargs:
        kwargs["device"] = device
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with torch.no_grad(), torch.device(device):
        fake_args, fake_kwargs = torch.utils._pytree.tree_map_only(
            torch.Tensor, mode.from_tensor, (args, kwargs)
        )
        with mode:
            fake = describe(op(*fake_args, **fake_kwargs))
        return describe(op(*args, **kwargs)), fake


def judge(op: OpInfo, dtype: Any, most: int) -> list[str]:
    """What differs, one line each, "theirs: " before those that the CPU has, too."""
    found: dict[str, str] = {}
    for number, sample in enumerate(itertools.islice(op.sample_inputs("cpu", dtype), most)):
        layouts = LAYOUTS if any(t.dim() > 1 for t in all_tensors(sample)) else LAYOUTS[:1]
        for layout in layouts:
            try:
                real, fake = results(op, sample, layout, "ocl")
            except Exception:  # declined, or no fake implementation: others judge that
                continue
            if real == fake or any(line.startswith(layout) for line in found):
                continue
            # -1: there are more or fewer of them.
            index = next(
                (i for i, (a, b) in enumerate(zip(real, fake, strict=False)) if a != b), -1
            )
            try:
                theirs = results(op, sample, layout, "cpu")
                same = theirs == (real, fake)
            except Exception:
                same = False
            found[f"{layout} #{number}"] = (
                "theirs: " if same else ""
            ) + f"output {index} {real[index]} instead of {fake[index]}"
    return [f"{place}: {text}" for place, text in found.items()]


def computed(op: OpInfo, sample: SampleInput, layout: str, device: str, grad: bool) -> list:
    """Descriptions of the results, and of gradients where they are wanted."""
    import torch

    host = "cpu" if op.name == "tensor_split" else device
    args = (laid_out(sample.input, layout, device), *laid_out(tuple(sample.args), layout, host))
    kwargs = laid_out(sample.kwargs, layout, device)
    if "device" in kwargs:
        kwargs["device"] = device
    leaves = [
        t
        for t in torch.utils._pytree.tree_leaves((args, kwargs))
        if grad and isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())
    ]
    for t in leaves:
        t.requires_grad_()
    with torch.device(device):
        out = op(*args, **kwargs)
    found = describe(out)
    ends = [
        t
        for t in torch.utils._pytree.tree_leaves(out)
        if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    if leaves and ends:
        found += describe(
            torch.autograd.grad(ends, leaves, [t.detach() for t in ends], allow_unused=True)
        )
    return found


def judge_by_cpu(op: OpInfo, dtype: Any, most: int, grad: bool) -> list[str]:
    """What differs from the CPU's results, one line for each layout."""
    found: dict[str, str] = {}
    for number, sample in enumerate(itertools.islice(op.sample_inputs("cpu", dtype), most)):
        for layout in MORE_LAYOUTS if all_tensors(sample) else MORE_LAYOUTS[:1]:
            if any(line.startswith(layout) for line in found):
                continue
            try:
                theirs = computed(op, sample, layout, "cpu", grad)
                ours = computed(op, sample, layout, "ocl", grad)
            except Exception:  # others judge that
                continue
            for index, (a, b) in enumerate(itertools.zip_longest(ours, theirs)):
                if a != b:
                    found[f"{layout} #{number}"] = f"output {index} {a} instead of {b}"
                    break
    return [f"{place}: {text}" for place, text in found.items()]


def all_tensors(sample: SampleInput) -> list:
    import torch

    return [
        t
        for t in torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        if isinstance(t, torch.Tensor)
    ]


def work(names: list[str], options: argparse.Namespace) -> None:
    import torch
    import torch_ocl  # noqa: F401  registers the device
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    dtype, by_name = getattr(torch, options.dtype), {op.full_name: op for op in op_db}
    for name in names:
        op = by_name[name]
        lines = (
            judge_by_cpu(op, dtype, options.samples, options.grad)
            if options.cpu
            else judge(op, dtype, options.samples)
        )
        print("judged " + json.dumps([name, lines]), flush=True)


def entries(dtype: str, only: str) -> list[str]:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    return [
        op.full_name
        for op in op_db
        if getattr(torch, dtype) in op.supported_dtypes("cpu")
        and re.search(only, op.full_name)
        and not NO_PROMISE.search(op.name)
        and not op.name.startswith("jiterator")
    ]


def main() -> int:
    p = sweeping.parser(__doc__)
    p.add_argument("--only", default="", help="entries that match this regular expression")
    p.add_argument("--entries", type=pathlib.Path, help="a file of such expressions, one a line")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--samples", type=int, default=1000, help="at most so many of an entry")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--list", action="store_true", help="also what is theirs")
    p.add_argument("--cpu", action="store_true", help="compare with results on the CPU")
    p.add_argument("--grad", action="store_true", help="with --cpu: gradients, too")
    p.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.work:
        work(options.work, options)
        return 0
    only = options.only
    if options.entries:
        lines = [x for x in options.entries.read_text().splitlines() if x and x[0] != "#"]
        only = "^(" + "|".join(lines) + ")$"
    names = entries(options.dtype, only)
    running = []
    for part in range(options.jobs):
        command = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            "--dtype",
            options.dtype,
            "--samples",
            str(options.samples),
            *(["--cpu"] if options.cpu else []),
            *(["--grad"] if options.grad else []),
            "--work",
            json.dumps(names[part :: options.jobs]),
        ]
        running.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        )
    judged: dict[str, list[str]] = {}
    for process in running:
        for line in process.stdout:
            if line.startswith("judged "):
                name, lines = json.loads(line[7:])
                judged[name] = lines
        process.wait()
    ours = {
        n: [x for x in lines if "theirs: " not in x and n not in OURS]
        for n, lines in judged.items()
    }
    for name, lines in sorted(judged.items()):
        for line in lines if options.list else ours[name]:
            reason = next(
                (
                    f" ({why})"
                    for names, why in [*REASONS.items(), *OURS.items()]
                    if name in names.split("|")
                ),
                "",
            )
            print(f"  {name}: {line}{reason}")
    missing = sorted(set(names) - set(judged))
    failed = sum(map(bool, ours.values()))
    known = sum(map(bool, judged.values())) - failed
    end = f"; ended before {missing[0]}" if missing else ""
    print(f"{len(judged)} entries: {failed} ours, {known} theirs or known{end}")
    return 1 if failed or missing or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
