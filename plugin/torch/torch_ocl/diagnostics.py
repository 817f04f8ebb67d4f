"""Why there is no device, and what the plugin has done so far."""

from torch_ocl import _C


def unavailable_reason() -> str:
    """Why ``is_available()`` is False, as text; empty if it is True. Never raises."""
    return _C.unavailable_reason()


def device_report() -> str:
    """The drivers and devices that were found or refused, a line each, and remarks: say of a driver
    that is installed twice. Raises ``RuntimeError`` without the plugin."""
    return _C.device_report()


def plugin_path() -> str:
    """The path of the plugin library that was loaded; empty if none was."""
    return _C.plugin_path()


def counters() -> dict[str, int]:
    """Counts since the process began: ``operators`` run, kernel ``launches``, ``copies`` and
    ``copied_bytes``, ``program_builds`` (compiled) and ``program_loads`` (from the disk cache)."""
    return _C.counters()


def fallback_counts() -> dict[str, int]:
    """How often each operator ran on the CPU for want of a kernel, by name with overload."""
    return _C.fallback_counts()
