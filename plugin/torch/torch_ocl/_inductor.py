"""What Inductor, torch.compile's default backend, finds for ocl: an error that says what to do.

Importing this file registers it. Inductor asks torch.ocl for code generators when it begins, and
there are none yet.
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
    """Asked for the features of the backend, and for kernels."""

    __init__ = refuse


class PythonWrapperCodegen:
    """Asked for the code that calls the kernels."""

    supports_caching = True  # asked before anything can be refused
    __init__ = refuse
    create = staticmethod(refuse)


class CppWrapperCodegen(PythonWrapperCodegen):
    """The same in C++."""


class WrapperFxCodegen(PythonWrapperCodegen):
    """The same as a graph."""


class Refusal(CustomGraphModulePass):
    """Runs over every graph that has something on ocl, before operators are lowered."""

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
