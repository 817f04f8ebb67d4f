"""PyTorch's optim_db on ocl against the CPU: every optimizer in each configuration, as a loop over
parameters, foreach, fused and differentiable. The mode optimizer of sweep.py.

A case takes some steps with the same gradients on both devices; then the state, saved and loaded
into a new optimizer, has to go on bit for bit as the old one does.
"""

from __future__ import annotations

import copy
import functools
import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from samples import TOLERANCE, NoReference
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

# The second is empty, the third is not contiguous, the last is what CUDA's kernels cut in pieces.
SHAPES = ((5, 4), (0, 3), (6, 2, 3), (), (70000,))
MATRICES = ((5, 4), (3, 17), (6, 6))
STEPS = 4
Options = dict[str, Any]


def by_name() -> dict[str, OptimizerInfo]:
    return {info.name: info for info in optim_db}


def cases(info: OptimizerInfo, dtype: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every configuration of CUDA's, for it has most, with every implementation."""
    for made in info.optim_inputs_func("cuda"):
        for flag in ("", *info.supported_impls):
            options = {**made.kwargs, **dict.fromkeys(info.supported_impls, False)}
            if flag:
                options[flag] = True
            label = f"{made.desc}{' & ' * bool(flag)}{flag}"
            if dtype.is_complex and not info.supports_complex:
                continue
            if flag == "differentiable" and options.get("capturable"):
                continue  # the CPU has no such formula
            yield label, functools.partial(check, info, options, dtype)
    for device in ("cpu", "ocl"):
        for number, wrong in enumerate(errors(info, device, dtype)):
            yield f"error input #{number} of {device}", functools.partial(refuses, info, wrong)


def errors(info: OptimizerInfo, device: str, dtype: Any) -> list:
    return info.optim_error_inputs_func(device, dtype) if info.optim_error_inputs_func else []


def refuses(info: OptimizerInfo, wrong: Any) -> None:
    """The error that the database names, by the constructor or the first step."""
    made = wrong.optimizer_error_input
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            optimizer = info.optim_cls(made.params, **made.kwargs)
            optimizer.step(lambda: torch.zeros(())) if info.step_requires_closure else (
                optimizer.step()
            )
    except wrong.error_type as error:
        found = re.search(wrong.error_regex, str(error))
        assert found, f"{made.desc}: '{error}' instead of '{wrong.error_regex}'"
        return
    raise AssertionError(f"{made.desc}: no {wrong.error_type.__name__}")


def leaves(info: OptimizerInfo, device: str, dtype: Any) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(6)
    shapes = MATRICES if info.name in ("Muon", "Adafactor", "LBFGS") else SHAPES
    made = [torch.randn(s, generator=generator, dtype=dtype) for s in shapes]
    if len(shapes) > 3:
        made[2] = made[2].permute(2, 0, 1).contiguous().permute(1, 2, 0)
    return [t.to(device).requires_grad_() for t in made]


def gradient(like: torch.Tensor, step: int, sparse: bool) -> torch.Tensor:
    """Well away from 0, where the first steps of Adam are a sign."""
    generator = torch.Generator().manual_seed(100 * step + like.dim())
    g = torch.randn(like.shape, generator=generator, dtype=like.dtype)
    g = g + 0.1 * g.sgn()
    if sparse:
        g = g * (torch.arange(g.shape[0]) % 3 == step % 3).reshape(-1, *[1] * (g.dim() - 1))
        g = g.to_sparse(1)
    return g.to(like.device)


def take(
    info: OptimizerInfo, optimizer: Any, parameters: list, first: int, count: int, sparse: bool
) -> None:
    """Some steps, whose gradients are the same wherever they are taken."""
    for step in range(first, first + count):
        if not info.step_requires_closure:
            for p in parameters:
                p.grad = gradient(p, step, sparse)
            optimizer.step()
            continue
        targets = [gradient(p, 0, sparse) for p in parameters]

        def closure(targets: list = targets) -> torch.Tensor:
            optimizer.zero_grad()
            loss = sum((p - t).abs().square().sum() for p, t in zip(parameters, targets))
            loss.backward()
            return loss

        optimizer.step(closure)


def train(info: OptimizerInfo, options: Options, dtype: Any, device: str) -> tuple[list, list, Any]:
    """(parameters, what is to be compared, optimizer) after STEPS steps."""
    sparse = info.only_supports_sparse_grads
    parameters = leaves(info, device, dtype)
    if sparse:
        parameters = [p for p in parameters if p.dim() > 1 and p.numel()]
    steps = parameters
    if options.get("differentiable"):  # gradients flow through the steps to the first values
        steps = [p.clone() for p in parameters]
    optimizer = info.optim_cls(steps, **copy.deepcopy(options))
    # A second step would change what the first one's gradient needs.
    take(info, optimizer, steps, 0, 1 if options.get("differentiable") else STEPS, sparse)
    found = [p.detach().clone() for p in steps]
    if options.get("differentiable"):
        total = sum(p.abs().square().sum() for p in steps)
        found += [
            g for g in torch.autograd.grad(total, parameters, allow_unused=True) if g is not None
        ]
    elif not info.step_requires_closure:  # LBFGS keeps differences of what has converged: noise
        found += states(optimizer, steps)
    return steps, found, optimizer


def states(optimizer: Any, parameters: list) -> list[torch.Tensor]:
    """Tensors of the state, in the order of their names; counts of steps as they are."""
    found = []
    for p in parameters:
        state = optimizer.state[p]
        found += [state[k].detach().clone() for k in sorted(state) if torch.is_tensor(state[k])]
    return found


def reference_options(options: Options) -> Options:
    """The same mathematics on the CPU, which has no graphs to capture."""
    return {k: v for k, v in options.items() if k not in ("capturable", "foreach", "fused")}


def check(info: OptimizerInfo, options: Options, dtype: Any) -> None:
    try:
        _, want, _ = train(info, reference_options(options), dtype, "cpu")
    except Exception as error:
        raise NoReference(f"{type(error).__name__}: {error}") from error
    parameters, got, optimizer = train(info, options, dtype, "ocl")
    rtol, atol = TOLERANCE[dtype]
    assert len(got) == len(want), f"{len(got)} tensors instead of {len(want)}"
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a.cpu().to(b.dtype), b, rtol=rtol, atol=atol)
    if not options.get("differentiable"):
        goes_on(info, options, parameters, optimizer)


def goes_on(info: OptimizerInfo, options: Options, parameters: list, optimizer: Any) -> None:
    """A saved state, read back on the CPU and loaded, gives the bits of the steps that follow."""
    sparse = info.only_supports_sparse_grads
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    twins = [p.detach().clone().requires_grad_() for p in parameters]
    other = info.optim_cls(twins, **copy.deepcopy(options))
    other.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    take(info, optimizer, parameters, STEPS, STEPS, sparse)
    take(info, other, twins, STEPS, STEPS, sparse)
    for a, b in zip(parameters, twins, strict=True):
        assert torch.equal(a, b), "a loaded state goes on otherwise"
