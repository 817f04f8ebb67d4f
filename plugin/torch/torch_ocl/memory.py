"""Device memory: statistics, limits and the cache. All sizes are in bytes."""

import os
import pickle
from collections import OrderedDict

from torch_ocl import _C
from torch_ocl.device import DeviceLike, _index, get_device_properties

_KINDS = ("current", "peak", "allocated", "freed")
_COUNTED = (
    "allocated_bytes",
    "requested_bytes",
    "active_bytes",
    "reserved_bytes",
    "pinned_bytes",
    "allocation",
    "segment",
)


def empty_cache() -> None:
    """Returns unoccupied cached memory to the driver, on every device in use."""
    _C.empty_cache()


def empty_host_cache() -> None:
    """Unpins cached host memory whose streams have finished with it."""
    _C.empty_host_cache()


def memory_stats(device: DeviceLike = None) -> OrderedDict[str, int]:
    """The allocator's statistics; empty before the first use of a device.

    Keys are ``"<what>.all.<kind>"`` with what: ``requested_bytes`` (as asked), ``allocated_bytes``
    (the same in whole blocks), ``active_bytes`` (allocated, or freed but still used by a stream),
    ``reserved_bytes`` (taken from the driver), ``pinned_bytes``, ``allocation`` and ``segment``
    (counts); kind: ``current``, ``peak``, ``allocated`` and ``freed`` (sums). Further keys:
    ``num_ooms``, ``num_alloc_retries``, ``driver_bytes``, ``recommended_bytes``, ``limit_bytes``
    (0: none), ``low_limit_bytes``.
    """
    result: OrderedDict[str, int] = OrderedDict()
    if not _C.is_initialized():
        return result
    raw = _C.memory_stats(_index(device))
    for what in _COUNTED:
        for kind in _KINDS:
            result[f"{what}.all.{kind}"] = raw.pop(f"{what}.{kind}")
    result.update(raw)
    return result


def _stat(device: DeviceLike, key: str) -> int:
    return memory_stats(device).get(key, 0)


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors occupy now, in whole blocks."""
    return _stat(device, "allocated_bytes.all.current")


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that tensors occupied since the last ``reset_peak_memory_stats``."""
    return _stat(device, "allocated_bytes.all.peak")


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes taken from the driver: occupied and cached."""
    return _stat(device, "reserved_bytes.all.current")


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that were taken from the driver since the last ``reset_peak_memory_stats``."""
    return _stat(device, "reserved_bytes.all.peak")


def current_allocated_memory(device: DeviceLike = None) -> int:
    """Bytes that tensors occupy now, without cached blocks (by its name in ``torch.mps``)."""
    return memory_allocated(device)


def driver_allocated_memory(device: DeviceLike = None) -> int:
    """All bytes that this process has from the driver, including cached blocks."""
    return _stat(device, "driver_bytes")


def recommended_max_memory(device: DeviceLike = None) -> int:
    """How many bytes the process should use: the base of memory fractions and watermarks."""
    return get_device_properties(device).recommended_memory


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total) bytes of a device; memory of other processes counts as free."""
    total = get_device_properties(device).total_memory
    return max(total - driver_allocated_memory(device), 0), total


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Sets every peak to the current value."""
    _C.reset_peak_stats(_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Sets the sums ``allocated`` and ``freed`` and the counts of failures to 0."""
    _C.reset_accumulated_stats(_index(device))


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Limits memory to ``fraction * recommended_max_memory()``, at once.

    Args:
        fraction: a float from 0 to 2; 0 removes the limit.

    Allocating more raises ``torch.OutOfMemoryError``. TypeError and ValueError for an invalid
    fraction.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0.0 <= fraction <= 2.0:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    _C.set_fraction(_index(device), fraction)


def set_memory_watermarks(high: float, low: float, device: DeviceLike = None) -> None:
    """Sets both limits, as ratios of ``recommended_max_memory()``.

    Args:
        high: allocating more raises ``torch.OutOfMemoryError``; from 0 to 2, 0 removes the limit.
        low: above this, cached memory is returned to the driver; from 0 to 2, 0 switches that off.
    """
    for name, value in (("high", high), ("low", low)):
        if not 0.0 <= value <= 2.0:
            raise ValueError(f"Invalid {name} watermark: {value}. Allowed range: 0~2")
    _C.set_watermarks(_index(device), float(high), float(low))


def _readable(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.2f} {unit}"


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """``memory_stats`` as a readable table; ``abbreviated`` leaves out the sums."""
    stats = memory_stats(device)
    kinds = _KINDS[:2] if abbreviated else _KINDS
    width = 17 + 13 * len(kinds)
    lines = [f"Memory of ocl:{_index(device)}", "-" * width]
    lines.append(f"{'':17}" + "".join(f"{kind:>13}" for kind in kinds))
    for what in _COUNTED:
        cells = [stats.get(f"{what}.all.{kind}", 0) for kind in kinds]
        texts = [_readable(c) if what.endswith("_bytes") else str(c) for c in cells]
        lines.append(f"{what:17}" + "".join(f"{text:>13}" for text in texts))
    limit = stats.get("limit_bytes", 0)
    lines.append("-" * width)
    lines.append(
        f"driver {_readable(stats.get('driver_bytes', 0))}, "
        f"limit {_readable(limit) if limit else 'none'}, "
        f"out of memory {stats.get('num_ooms', 0)} times, "
        f"retried {stats.get('num_alloc_retries', 0)} times"
    )
    return "\n".join(lines)


def _record_memory_history(
    enabled: str | None = "all", stacks: str | None = "python", max_entries: int = 1_000_000
) -> None:
    """Begins to record allocations and frees for ``_snapshot``, and drops older records.

    Args:
        enabled: "all", "state" (only live allocations), or None to stop.
        stacks: "python" records where each allocation was made; None: no stacks.
        max_entries: the most records that are kept; the oldest ones are dropped first.
    """
    if enabled not in (None, "all", "state"):
        raise ValueError(f"enabled must be 'all', 'state' or None, got {enabled!r}")
    if stacks not in (None, "python"):
        raise ValueError(f"stacks must be 'python' or None, got {stacks!r}")
    if enabled is None:
        _C.memory_history_stop()
    else:
        _C.memory_history_start(
            stacks == "python", max(1, int(max_entries)) if enabled == "all" else 0
        )


def _snapshot() -> dict:
    """The records, in the format of ``torch.cuda.memory._snapshot``.

    https://pytorch.org/memory_viz and ``torch.cuda._memory_viz`` read it. Only memory that was
    allocated after ``_record_memory_history`` is in it. Segments are internal to the plugin: each
    live allocation appears as one.
    """
    return _C.memory_snapshot()


def _dump_snapshot(filename: str | os.PathLike = "dump_snapshot.pickle") -> None:
    """Writes ``_snapshot`` to a pickle file for https://pytorch.org/memory_viz."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
