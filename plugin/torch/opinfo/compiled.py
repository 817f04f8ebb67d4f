"""A sample on ocl through torch.compile's default compiler, against the CPU's results as they are
without it: the mode compiled of sweep.py."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
import values
from samples import tensors
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.opinfo.core import OpInfo, SampleInput


def _unseeded(function: Any, *args: Any, **kwargs: Any) -> Any:
    """In place of the database's call with a seed, which Dynamo cannot trace."""
    return function(*args, **kwargs)


def compiled(op: OpInfo, sample: SampleInput, dtype: Any) -> None:
    """A graph that ends up uncompiled is an error."""
    torch._dynamo.reset()
    common_methods_invocations.wrapper_set_seed = _unseeded
    both, plain = copy.copy(op), op.op
    function = torch.compile(lambda *args, **kwargs: plain(*args, **kwargs))

    def call(*args: Any, **kwargs: Any) -> Any:
        given = tensors((args, kwargs))
        # Constructors are given tensors by their device alone.
        places = {t.device.type for t in given} or {torch.get_default_device().type}
        return (function if "ocl" in places else plain)(*args, **kwargs)

    both.op = call
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "ocl: torch.compile runs")
        values.run_sample(both, sample, dtype, grad=False)
