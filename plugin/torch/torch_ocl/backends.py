"""The module ``torch.backends.ocl``: the backend's version and switches."""

from torch_ocl import _C
from torch_ocl.device import DeviceLike, get_device_properties, is_available, is_built

__all__ = [
    "get_device_capability",
    "get_setting",
    "is_available",
    "is_built",
    "set_setting",
    "settings",
    "version",
]


def version() -> str | None:
    """The version of the loaded plugin; None without one."""
    return _C.plugin_version() or None


def get_device_capability(device: DeviceLike = None) -> str:
    """The device's OpenCL C version and features, e.g. ``"OpenCL C 1.2 fp64 unified_memory"``."""
    properties = get_device_properties(device)
    features = [
        name
        for name in (
            "fp64",
            "fp16_arithmetic",
            "unified_memory",
            "subgroups",
            "int64_atomics",
            "float_atomics",
        )
        if getattr(properties, f"has_{name}")
    ]
    return " ".join([properties.language_version.strip(), *features])


def settings() -> dict[str, str]:
    """Every setting with its value, as text: the environment variables and the switches."""
    return {name: _C.get_setting(name) for name in _C.settings()}


def get_setting(name: str) -> str:
    """The value of a setting, as text. RuntimeError for an unknown name."""
    return _C.get_setting(name)


def set_setting(name: str, value: object) -> None:
    """Changes a setting at run time; it wins over the environment.

    ``value`` is text, a number or a bool. RuntimeError, with the accepted range, for a bad one.
    """
    text = str(int(value)) if isinstance(value, bool) else str(value)
    _C.set_setting(name, text)
