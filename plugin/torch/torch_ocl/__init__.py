"""OpenCL devices for PyTorch: importing this package adds device type ``ocl``.

Once it is installed, ``import torch`` imports it, unless torch has another accelerator to use
(``OCLTENSOR_AUTOLOAD``).

>>> import torch
>>> torch.ocl.is_available()
True
>>> torch.ones(3, device="ocl")

``torch.ocl`` has devices, streams, memory and random numbers, ``torch.backends.ocl`` the switches.
If no device can be used, ``torch.ocl.unavailable_reason()`` says why.
"""

import sys
import warnings

__version__ = "0.2.0"
__all__ = ["__version__"]

_failure: Exception | None = None
_waits: str | None = None


def _autoload() -> None:
    """Entry point for ``import torch``; importing this package has registered the device by then.

    PyTorch turns any exception from here into a failure of ``import torch`` itself, so a failed
    registration becomes a warning, and ``torch.ocl`` a module that says why. A later ``import
    torch_ocl`` tries again, and raises.
    """
    if _failure is None and _waits is None:
        return  # registered, or this package is still being imported, which registers it later
    from torch_ocl import _missing

    _missing.install(_waits or str(_failure))
    if _failure is not None:
        warnings.warn(f"torch.ocl is not available: {_failure}", RuntimeWarning, stacklevel=2)
    sys.modules.pop(__name__, None)


# Last, because `import torch` calls _autoload() if torch has not been imported before.
import torch


def _torch_is_importing() -> bool:
    return bool(getattr(torch.__spec__, "_initializing", False))


try:
    from torch_ocl import _accelerators, _register

    if _torch_is_importing():
        _waits = _accelerators.reason_to_wait()
    if _waits is None:
        _register.register()
except Exception as error:
    if not _torch_is_importing():
        raise
    _failure = error
