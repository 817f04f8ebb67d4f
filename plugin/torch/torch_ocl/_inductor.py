"""Makes Inductor, torch.compile's default backend, raise an error for ocl that says what to do.

Inductor has no code generators for ocl yet. Importing this file registers classes in their places,
which raise the error; ``ocl.py`` imports it when Inductor looks for its code generators.
"""

from typing import Any, NoReturn

from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass

TEXT = (
    "ocl: torch.compile's default backend, Inductor, makes no code for ocl yet: use "
    "torch.compile(..., backend='aot_eager') or backend='eager'"
)


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(TEXT)


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
