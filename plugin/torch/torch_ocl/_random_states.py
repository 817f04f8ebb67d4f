"""Random numbers that a compiled graph draws again in its backward pass (checkpoints with dropout):
PyTorch's two operators that keep and put back a generator's state know device types by name."""

import importlib
from collections.abc import Callable
from typing import Any

import torch

STATE = 16
"""Bytes of a generator's state (random.py)."""


def install() -> None:
    """Adds ocl, once per process."""
    try:
        prims = importlib.import_module("torch._prims.rng_prims")
        _add(prims.run_and_save_rng_state, _run_and_save)
        _add(prims.run_with_rng_state, _run_with)
    except (ImportError, AttributeError, KeyError):  # private names, which a version may lack
        return


def _add(operator: Any, of_ocl: Callable[..., Any]) -> None:
    by_device = operator.py_kernels[torch._C.DispatchKey.BackendSelect]

    def select(*args: Any, **kwargs: Any) -> Any:
        chosen = by_device if _device(args, kwargs) is None else of_ocl
        return chosen(*args, **kwargs)

    operator.py_impl(torch._C.DispatchKey.PrivateUse1)(of_ocl)
    operator.py_kernels[torch._C.DispatchKey.BackendSelect] = select
    # The functions for tracing call the same one by its name in the function that made them.
    for trace in operator.python_key_table.values():
        _replace(trace, by_device, select)
    fakes = getattr(
        importlib.import_module("torch._higher_order_ops.utils"), "registered_hop_fake_fns", {}
    )
    if operator in fakes:
        _replace(fakes[operator], by_device, select)


def _replace(function: Any, old: Any, new: Any) -> None:
    for cell in function.__closure__ or ():
        if cell.cell_contents is old:
            cell.cell_contents = new


def _device(args: Any, kwargs: Any) -> torch.device | None:
    """ocl, if the operator runs there."""
    given = kwargs.get("device") or next(
        (a.device for a in args[1:] if isinstance(a, torch.Tensor)), None
    )
    device = None if given is None else torch.device(given)
    return device if device is not None and device.type == "ocl" else None


def _run_and_save(operator: Any, *args: Any, **kwargs: Any) -> Any:
    state = torch.empty(STATE, dtype=torch.uint8)
    if type(state) is torch.Tensor:  # not one of a tracer's
        state = torch.ocl.get_rng_state(_device((operator, *args), kwargs) or "ocl")
    return state, operator(*args, **kwargs)


def _run_with(state: torch.Tensor, operator: Any, *args: Any, **kwargs: Any) -> Any:
    device = _device((operator, *args), kwargs) or torch.device("ocl")
    current = torch.ocl.get_rng_state(device)
    torch.ocl.set_rng_state(state.cpu(), device)
    try:
        return operator(*args, **kwargs)
    finally:
        torch.ocl.set_rng_state(current, device)
