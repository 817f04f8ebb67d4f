"""PyTorch Geometric's own tests on ocl and on torch's CPU, and each of its modules beside a twin.

usage: geometric.py CHECKOUT [options of suite.py]

CHECKOUT is a copy of github.com/pyg-team/pytorch_geometric, whose package and tests are used;
pytest and what `pip install torch_geometric` brings have to be installed, not its compiled
extensions. The tests run with the device as default. On ocl each call of a module of
torch_geometric.nn is made on copies as well, on ocl and on the CPU: outputs and gradients of
parameters and inputs have to agree, unless the module draws random numbers.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import suite

OTHERS = ("utils", "test_edge_index.py", "test_index.py", "test_hash_tensor.py")
EXPLAINED = {
    "test_validate|out_of_bounds": "the device finds indices out of range, at the next wait",
    r"test_basic_aggregation\[MeanAggregation": "hears of test_validate's index",
    "test_compile_": "Inductor makes no code for ocl",
    "augmentation|dropout_(adj|edge)|erdos|blockmodel": "expects the random numbers of the CPU",
    "lexsort|barabasi|structured_negative": "hands tensors of the default device to NumPy",
    "total_influence": "moves the model to the CPU",
    "_nested_tensor": "nested tensors of strided layout are not supported",
}
# float32 sums of up to some hundred terms, in another order than the CPU's, through several layers
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    """Folders rather than files: the suite's modules take seconds to be imported."""
    tests = options.checkout / "test"
    folders = [f for f in (tests / "nn").iterdir() if f.is_dir() and any(f.glob("test_*.py"))]
    return sorted([*folders, *(tests / "nn").glob("test_*.py"), *(tests / f for f in OTHERS)])


def prepare(device: str) -> list[Any]:
    """One device in place of those that the suite looks for, and no tests that need a network."""
    import pytest
    import torch

    sys.path.insert(0, ".")
    if device == "ocl":
        import torch_ocl  # noqa: F401
    import torch_geometric.testing as testing

    place = torch.device(device, 0) if device == "ocl" else torch.device(device)
    one = [pytest.param(place, id="device")]

    def with_device(function: Callable) -> Callable:
        return pytest.mark.parametrize("device", one)(function)

    testing.withDevice = testing.withCUDA = with_device  # type: ignore[attr-defined]
    testing.onlyOnline = pytest.mark.skip(reason="needs a network")  # type: ignore[attr-defined]
    torch.set_default_device(device)
    return [Seed(), *([Twins()] if device == "ocl" else [])]


class Seed:
    """A pytest plugin: every test begins with the same random numbers."""

    def pytest_runtest_setup(self, item: Any) -> None:
        import torch

        torch.manual_seed(0)


class Twins:
    """A pytest plugin that compares modules on ocl with copies of them on the CPU."""

    def __init__(self) -> None:
        self.busy = False
        self.compares = True  # else modules are only moved
        self.notes: collections.Counter = collections.Counter()

    def pytest_sessionstart(self) -> None:
        import torch

        call = torch.nn.Module.__call__

        def compared(module: Any, *args: Any, **kwargs: Any) -> Any:
            ours = type(module).__module__.startswith("torch_geometric.nn")
            if torch.compiler.is_compiling() or torch.jit.is_tracing() or self.busy or not ours:
                return call(module, *args, **kwargs)
            # Layers that make parameters by Tensor(n) have them on the CPU for any default device.
            module.to("ocl")
            if not self.compares:
                return call(module, *args, **kwargs)
            self.busy = True
            try:
                with kept_random_state():
                    self.notes[compare(module, args, kwargs)] += 1
                return call(module, *args, **kwargs)
            finally:
                self.busy = False

        torch.nn.Module.__call__ = compared  # type: ignore[method-assign]

    def pytest_runtest_teardown(self, item: Any) -> None:
        self.notes.clear()

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.when == "call":
            item.user_properties.extend(self.notes.items())


def compare(module: Any, args: tuple, kwargs: dict) -> str:
    """What came of a module and its twin; AssertionError where the devices disagree."""
    import torch

    try:
        theirs, again = (run(module, args, kwargs, "cpu", seed) for seed in (1, 2))
    except Exception:
        return "without a twin"  # not to be copied, or an error that the test expects
    try:
        for one, other in zip(again, theirs, strict=True):
            torch.testing.assert_close(one, other, equal_nan=True, **TOLERANCE)
    except (AssertionError, ValueError):
        return "random"
    ours = run(module, args, kwargs, "ocl", 1)
    for mine, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, wanted, equal_nan=True, **TOLERANCE)
    return "compared"


@contextlib.contextmanager
def kept_random_state() -> Iterator[None]:
    import torch

    state, ours = torch.get_rng_state(), torch.get_device_module("ocl").get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        torch.get_device_module("ocl").set_rng_state(ours)


def moved(value: Any, device: str, leaves: list[Any]) -> Any:
    """A copy on the device; floating tensors become leaves whose gradients are compared."""
    import torch

    if isinstance(value, torch.Tensor):
        value = (
            value.detach().to(device).clone() if type(value) is torch.Tensor else value.to(device)
        )
        if (
            type(value) is torch.Tensor
            and value.is_floating_point()
            and value.layout == torch.strided
        ):
            leaves.append(value.requires_grad_(torch.is_grad_enabled()))
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(v, device, leaves) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, device, leaves) for v in value)
    if isinstance(value, dict):
        return {k: moved(v, device, leaves) for k, v in value.items()}
    return value.to(device) if hasattr(value, "to") else copy.deepcopy(value)


def tensors_of(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        value = value.as_tensor() if hasattr(value, "as_tensor") else value
        return [value.to_dense() if value.layout != torch.strided else value]
    items = value.values() if isinstance(value, dict) else value
    return (
        [t for v in items for t in tensors_of(v)] if isinstance(value, (list, tuple, dict)) else []
    )


def run(module: Any, args: tuple, kwargs: dict, device: str, seed: int) -> list[Any]:
    """Outputs and gradients of copies of a module and its inputs, on the CPU."""
    import torch

    torch.manual_seed(seed)
    leaves: list[Any] = []
    twin = copy.deepcopy(module).to(device)
    for part in twin.modules():  # what modules keep beside parameters and buffers: caches
        part._forward_hooks.clear()  # those by which a test watches the module
        for name, value in vars(part).items():
            if not name.startswith(("_parameters", "_buffers", "_modules")):
                with contextlib.suppress(Exception):
                    setattr(part, name, moved(value, device, [])) if tensors_of(value) else None
    args, kwargs = moved(args, device, leaves), moved(kwargs, device, leaves)
    with torch.device(device):
        outputs = tensors_of(twin(*args, **kwargs))
    leaves += [p for p in twin.parameters() if p.requires_grad]
    total = sum(o.abs().sin().sum() for o in outputs if o.requires_grad)
    gradients: list[Any] = []
    if isinstance(total, torch.Tensor) and leaves:
        gradients = [
            torch.zeros(()) if g is None else g
            for g in torch.autograd.grad(total, leaves, allow_unused=True)
        ]
    return [t.detach().cpu() for t in [*outputs, *gradients]]


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    root=lambda options: options.checkout,
    environment=lambda device, options: {"PYTHONDONTWRITEBYTECODE": "1"},
    explained=EXPLAINED,
    prefix="test/",
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("checkout", type=lambda text: pathlib.Path(text).resolve())

    def check(options: argparse.Namespace) -> None:
        if not (options.checkout / "torch_geometric").is_dir():
            p.error("CHECKOUT is to have the folders torch_geometric and test")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
