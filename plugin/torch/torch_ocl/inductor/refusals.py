"""Ways into Inductor that make no code for ocl yet: torch.export's packages (AOTInductor), its C++
and FX wrappers, and calls of Inductor around torch.compile."""

from typing import Any, NoReturn

TEXT = (
    "ocl: Inductor makes code for ocl by torch.compile alone, not for this call (packages of "
    "torch.export, C++ wrappers): use torch.compile, or backend='aot_eager'"
)


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(TEXT)


class CppWrapper:
    """In place of the class that writes the code around kernels in C++."""

    supports_caching = True  # read before an instance is made, so it must exist
    __init__ = refuse
    create = staticmethod(refuse)


class FxWrapper(CppWrapper):
    """In place of the class that makes an FX graph of it."""
