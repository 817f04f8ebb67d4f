"""How many commands op_db's entries enqueue: what takes dozens of launches for a small sample is
bound by the host.

usage: commands.py [--only REGEX] [--dtype float32] [--samples N] [--more-than N]

Per entry the sample (of the first N) with the most kernels, copies and fills, once its programs are
there. Prints those with more than `--more-than` commands, most first: a line `count  entry` each,
with the reason where one is known why they remain. Declined entries are left out.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import sweeping
import torch
import torch_ocl  # noqa: F401  registers the device
from strides import laid_out
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

# Why an entry has as many as it has: what would have to be overridden is PyTorch's own code above
# the device's operators.
REASONS = {
    r"nn\.functional\.linear_cross_entropy\.": "PyTorch's loop over chunks of the batch, "
    "11 to 14 operators for each of four chunks",
    r"gradient$": "PyTorch's loop over dimensions; weighted differences of slices, "
    "all single pointwise operators",
    r"matrix_exp$": "seven products for a polynomial, "
    "and one for each time that the matrix was halved",
    r"cov$": "PyTorch's checks of the weights, three of which the host reads, before the product",
    r"nn\.functional\.cosine_embedding_loss$": "PyTorch's formula, "
    "differentiated through its parts",
}


def reason(name: str) -> str:
    return next((f"  ({why})" for pattern, why in REASONS.items() if re.match(pattern, name)), "")


def commands(body: Callable[[], object]) -> int:
    """Kernels, copies and fills of a call, recorded by the plugin's statistics."""
    body()
    torch.ocl.synchronize()
    torch.ocl.profiler.reset_statistics()
    body()
    torch.ocl.synchronize()
    rows = torch.ocl.profiler.statistics()
    return sum(row["count"] for kind in ("kernels", "copies") for row in rows[kind])


def most(op: OpInfo, dtype: torch.dtype, samples: int) -> int | None:
    """Of the entry's first samples; None where none of them runs."""
    counts = []
    for sample in itertools.islice(op.sample_inputs("cpu", dtype), samples):
        arguments = laid_out([sample.input, list(sample.args), sample.kwargs], "plain", "ocl")

        def body(arguments: Any = arguments) -> None:
            with torch.no_grad():
                op.op(arguments[0], *arguments[1], **arguments[2])

        try:
            counts.append(commands(body))
        except Exception:  # noqa: BLE001  declined or wrong: sweep.py judges that
            continue
    return max(counts, default=None)


def main() -> int:
    parser = sweeping.parser_of_entries(__doc__)
    parser.add_argument("--more-than", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dtype = getattr(torch, options.dtype)
    found: dict[str, int] = {}
    counted = 0
    with (
        tempfile.NamedTemporaryFile(suffix=".json") as file,
        torch.ocl.profiler.profile(path=file.name),
    ):
        for op in op_db:
            name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
            if not re.search(options.only, name) or not op.supports_dtype(dtype, "cpu"):
                continue
            if sys.stderr.isatty():
                print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)
            count = most(op, dtype, options.samples)
            if count is None:
                continue
            counted += 1
            found[name] = max(count, found.get(name, 0))
    for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        if count > options.more_than:
            print(f"{count:5d}  {name}{reason(name)}")
    print(
        f"{counted} entries, {sum(c > options.more_than for c in found.values())} of them with "
        f"more than {options.more_than} commands"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
