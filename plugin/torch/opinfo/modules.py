"""PyTorch's module_db on ocl against the CPU: every module with all its inputs, in training and in
evaluation. The mode module of sweep.py.

A case makes the module on the CPU, moves a copy, and compares results, buffers, gradients of inputs
and parameters, and in float64 second gradients; then made on ocl, copied, saved and loaded, it has
to give the same.
"""

from __future__ import annotations

import copy
import functools
import io
from collections.abc import Callable, Iterator
from typing import Any

import torch
from derivatives import gradients
from samples import WIDER, NoReference, compare, move, tensors, widen
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db

# Modules that draw random numbers in training, and those that do always.
DRAW = {
    "nn.Dropout",
    "nn.Dropout1d",
    "nn.Dropout2d",
    "nn.Dropout3d",
    "nn.AlphaDropout",
    "nn.FeatureAlphaDropout",
    "nn.RReLU",
}
DRAW_ALWAYS = {"nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d"}


def by_name() -> dict[str, ModuleInfo]:
    return {info.name: info for info in module_db}


def cases(info: ModuleInfo, dtype: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    for training in (True, False):
        torch.manual_seed(3)
        try:
            found = info.module_inputs_func(
                info, device="cpu", dtype=dtype, requires_grad=True, training=training
            )
        except Exception as error:
            raise NoReference(str(error)) from error
        for number, made in enumerate(found):
            if made.forward_input is not None:
                label = f"{'training' if training else 'evaluation'} #{number} {made.desc}"
                yield label, functools.partial(check, info, made, dtype, training)


def build(info: ModuleInfo, made: ModuleInput, dtype: Any, training: bool) -> torch.nn.Module:
    """The module on the CPU."""
    torch.manual_seed(4)
    module = info.module_cls(*made.constructor_input.args, **made.constructor_input.kwargs)
    if dtype.is_complex or dtype.is_floating_point:
        module = module.to(dtype)
    return module.train(training)


def run(module: torch.nn.Module, made: ModuleInput, convert: Callable[[Any], Any]) -> list:
    """Results, buffers, then gradients of the inputs and the parameters."""
    args, kwargs = convert(list(made.forward_input.args)), convert(made.forward_input.kwargs)
    torch.manual_seed(5)
    result = module(*args, **kwargs)
    outs = [t for t in tensors(result) if t.requires_grad]
    leaves = [t for t in tensors((args, kwargs)) if t.requires_grad]
    leaves += [p for p in module.parameters() if p.requires_grad]
    found = [t.detach() for t in tensors(result)] + [b.clone() for b in module.buffers()]
    if not outs or not leaves:
        return found
    second = all(t.dtype in (torch.float64, torch.complex128) for t in leaves)
    first = gradients(outs, leaves, create_graph=second)
    found += [t.detach() for t in first]
    if second:
        found += gradients([t for t in first if t.requires_grad], leaves)
    return found


def on(device: str, value: Any) -> Any:
    return move(value, device)


def check(info: ModuleInfo, made: ModuleInput, dtype: Any, training: bool) -> None:
    random = info.name in DRAW_ALWAYS or (training and info.name in DRAW)
    try:
        theirs = build(info, made, dtype, training)
        lazy = info.is_lazy
        ours = copy.deepcopy(theirs).to("ocl") if not lazy else theirs
        if lazy:  # its parameters come with the first input
            run(theirs, made, functools.partial(on, "cpu"))
            ours = copy.deepcopy(theirs).to("ocl")
        wide = copy.deepcopy(theirs).to(WIDER[dtype]) if dtype in WIDER else None
        state = copy.deepcopy(theirs.state_dict())
        want = run(theirs, made, functools.partial(on, "cpu"))
    except Exception as error:
        raise NoReference(f"{type(error).__name__}: {error}") from error
    got = run(ours, made, functools.partial(on, "ocl"))
    try:
        compare(got, want, dtype, not random)
    except AssertionError:
        if wide is None or random:
            raise
        exact = run(wide, made, lambda value: widen(move(value, "cpu")))
        compare(got, [t.to(w.dtype) for t, w in zip(exact, want, strict=True)], dtype, True)
    if not lazy:
        again(info, made, dtype, training, state, [] if random else got)


def again(
    info: ModuleInfo, made: ModuleInput, dtype: Any, training: bool, state: dict, got: list
) -> None:
    """Made on ocl, with the CPU's parameters from a file, it gives the same."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    args = move(list(made.constructor_input.args), "ocl")
    args = [copy.deepcopy(a).to("ocl") if isinstance(a, torch.nn.Module) else a for a in args]
    kwargs = move(made.constructor_input.kwargs, "ocl")
    if "device" in kwargs:
        kwargs["device"] = "ocl"
    with torch.device("ocl"):
        module = info.module_cls(*args, **kwargs)
    module = module.to(dtype).train(training)
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        assert value.device.type == "ocl", f"{name} is made on {value.device}"
    module.load_state_dict(torch.load(file, map_location="ocl", weights_only=True))
    if got:
        compare_exactly(run(module, made, functools.partial(on, "ocl")), got)


def compare_exactly(mine: list, others: list) -> None:
    assert len(mine) == len(others), "made on ocl: other results"
    for a, b in zip(mine, others, strict=True):
        torch.testing.assert_close(
            a, b, rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda m: f"made on ocl: {m}"
        )
