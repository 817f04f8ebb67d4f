"""Makes Inductor, torch.compile's default backend, raise an error for ocl that says what to do.

Inductor has no code generators for ocl yet. What is compiled for ocl becomes a function that raises
the error. Dynamo keeps it, so that a library which catches the error and goes on without compiled
code has its function traced once, not at every call; calls with tensors of the CPU compile as ever.

Where Inductor is reached by another way, as for programs of torch.export, classes in the places of
its code generators raise the error. Importing this file registers them; ``_borders.py`` imports it
when torch.compile calls Inductor, ``ocl.py`` when Inductor looks for its code generators.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch._dynamo import config
from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.exc import InductorError
from torch.utils import _pytree as pytree

TEXT = (
    "ocl: torch.compile's default backend, Inductor, makes no code for ocl yet: use "
    "torch.compile(..., backend='aot_eager') or backend='eager'"
)


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(TEXT)


class InductorRefusal(InductorError, NotImplementedError):
    """What Inductor's errors are when it compiles; it is raised when the function is called."""

    def __init__(self) -> None:
        super().__init__(NotImplementedError(TEXT), None)


def _raise_refusal(*_: Any) -> NoReturn:
    raise InductorRefusal


def _is_of_ocl(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "ocl"


def refusal(graph: Any, inputs: Any) -> Callable[..., Any] | None:
    """What Dynamo shall call in place of a graph of ocl; None for graphs without its tensors.

    Where Dynamo is told to suppress errors, it expects them now, and skips the function for good:
    then it raises the error.
    """
    parts = [part for part in graph.modules() if isinstance(part, torch.fx.GraphModule)]
    values = [node.meta.get("example_value") for part in parts for node in part.graph.nodes]
    found = any(map(_is_of_ocl, pytree.tree_leaves([list(inputs), values])))
    if found and config.suppress_errors:
        raise InductorRefusal
    return _raise_refusal if found else None


class Scheduling:
    """In place of the class that reports the backend's features and makes kernels."""

    __init__ = refuse


class PythonWrapperCodegen:
    """In place of the class that writes the code that calls the kernels, in Python."""

    supports_caching = True  # read before an instance is made, so it must exist
    __init__ = refuse
    create = staticmethod(refuse)


class CppWrapperCodegen(PythonWrapperCodegen):
    """In place of the class that writes that code in C++."""


class WrapperFxCodegen(PythonWrapperCodegen):
    """In place of the class that makes an FX graph of it."""


class Refusal(CustomGraphModulePass):
    """A pass that refuses every graph with tensors on ocl, before operators are lowered."""

    def __call__(self, gm: Any) -> None:
        refuse()

    def uuid(self) -> str:
        return TEXT


register_backend_for_device(
    "ocl",
    Scheduling,
    PythonWrapperCodegen,
    CppWrapperCodegen,
    WrapperFxCodegen,
    device_custom_pass=Refusal(),
)
register_device_op_overrides("ocl", DeviceOpOverrides())
