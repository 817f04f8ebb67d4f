"""OpenCL devices for PyTorch: importing this package adds device type ``ocl``.

Where it is installed, ``import torch`` imports it.

>>> import torch
>>> torch.ocl.is_available()
True
>>> torch.ones(3, device="ocl")

``torch.ocl`` holds devices, streams, memory and random numbers; ``torch.backends.ocl`` the
switches.
Where something is missing, ``torch.ocl.unavailable_reason()`` says what.
"""

import sys
import warnings

__version__ = "0.2.0"
__all__ = ["__version__"]

_failure: Exception | None = None


def _autoload() -> None:
    """Called by ``import torch``; importing this package has done the work by then.

    PyTorch turns any exception from here into a failure of ``import torch`` itself, so a failed
    registration becomes a warning, and ``torch.ocl`` an object that says why. A later ``import
    torch_ocl`` tries again, and raises.
    """
    if _failure is None:
        return  # registered; or this import goes on once torch's own is complete
    from torch_ocl import _missing

    _missing.install(str(_failure))
    warnings.warn(f"torch.ocl is not available: {_failure}", RuntimeWarning, stacklevel=2)
    sys.modules.pop(__name__, None)


# Last, for `import torch` calls _autoload() when it was not torch that began this import.
import torch


def _torch_is_importing() -> bool:
    return bool(getattr(torch.__spec__, "_initializing", False))


try:
    from torch_ocl import _register

    _register.register()
except Exception as error:
    if not _torch_is_importing():
        raise
    _failure = error
