"""The module ``torch.ocl``: OpenCL devices, streams, events, memory and random numbers.

Its names follow ``torch.cuda`` and ``torch.mps``. No function here opens a device before it is
needed, and ``is_available``, ``is_built`` and ``device_count`` never raise.

>>> if not torch.ocl.is_available():
...     print(torch.ocl.unavailable_reason())
>>> model.to("ocl")(torch.ones(3, 4, device="ocl"))
>>> torch.ocl.synchronize()  # raises errors of earlier work

devices
    ``device_count``, ``get_device_properties``, ``get_device_name``, ``current_device``,
    ``set_device``, ``device``; why there is none: ``unavailable_reason``;
    what was found: ``device_report``
streams and events
    ``Stream``, ``stream``, ``current_stream``, ``Event``; all work goes to the thread's current
    stream; only ``synchronize``, ``item`` and copies to the CPU wait for it
memory, in bytes
    ``memory_allocated``, ``memory_stats``, ``memory_summary``, ``empty_cache``,
    ``set_per_process_memory_fraction``; too much raises ``torch.OutOfMemoryError``
random numbers
    ``manual_seed``, ``get_rng_state``, ``set_rng_state``; ``torch.manual_seed`` seeds ocl, too
first steps
    ``warmup`` builds the programs that a model needs in parallel, before its first step;
    ``tune`` fits kernels to the device by measuring, once
graphs
    ``OCLGraph``, ``graph``, ``make_graphed_callables``: work that is recorded once and replayed
several processes
    ``distributed``: ``summary()`` of what collectives did, and where their time went
memory that others see
    ``cuda_view``, ``from_cuda``: one memory for ocl and CUDA's libraries; tensors sent to other
    processes
libraries
    ``integrations``: which libraries were made to know ocl, and why others were not;
    ``unpacked_counts``: which quantised weights they unpack, as kernels do not know their formats
what ran
    ``counters``; operators that ran on the CPU for want of a kernel: ``fallback_counts``; traces:
    ``profiler``; what ``torch.compile`` made: ``compile_report``

Switches and settings are in ``torch.backends.ocl``.
"""

import importlib
from typing import Any

from torch_ocl import _C, memory, profiler, random
from torch_ocl._compile import compile_report
from torch_ocl.amp import get_amp_supported_dtype
from torch_ocl.device import (
    DeviceProperties,
    _is_in_bad_fork,  # noqa: F401  PyTorch calls it
    _lazy_init,  # noqa: F401  the same
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_built,
    is_initialized,
    set_device,
    synchronize,
)
from torch_ocl.diagnostics import (
    counters,
    device_report,
    fallback_counts,
    plugin_path,
    unavailable_reason,
)
from torch_ocl.graphed_callables import make_graphed_callables
from torch_ocl.graphs import (
    OCLGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
)
from torch_ocl.integrations import integrations, unpacked_counts
from torch_ocl.kernels import Kernel, KernelLibrary, compile_kernel, request_kernels
from torch_ocl.memory import (
    current_allocated_memory,
    driver_allocated_memory,
    empty_cache,
    empty_host_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    recommended_max_memory,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_memory_watermarks,
    set_per_process_memory_fraction,
)
from torch_ocl.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_ocl.sharing import CudaView, cuda_view, from_cuda
from torch_ocl.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from torch_ocl.tuner import TunedClass, Tuning, export_measurements, tune, tuning
from torch_ocl.warm_up import WarmUp, warmup

__all__ = [
    "CudaView",
    "DeviceProperties",
    "Event",
    "Kernel",
    "KernelLibrary",
    "OCLGraph",
    "Stream",
    "StreamContext",
    "TunedClass",
    "Tuning",
    "WarmUp",
    "can_device_access_peer",
    "compile_kernel",
    "compile_report",
    "counters",
    "cuda_view",
    "current_allocated_memory",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "device_report",
    "driver_allocated_memory",
    "empty_cache",
    "empty_host_cache",
    "export_measurements",
    "fallback_counts",
    "from_cuda",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "integrations",
    "is_available",
    "is_built",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "plugin_path",
    "profiler",
    "random",
    "recommended_max_memory",
    "request_kernels",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_memory_watermarks",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "tune",
    "tuning",
    "unavailable_reason",
    "unpacked_counts",
    "warmup",
]


def __getattr__(name: str) -> Any:
    # PyTorch reads these as variables: checkpoint() saves random states only if `_initialized`.
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":
        return tuple(_C.default_generator(index) for index in range(device_count()))
    if name == "Scheduling":  # read by Inductor when it begins
        from torch_ocl.inductor.registration import register

        register()
    if name == "distributed":  # imports torch.distributed
        return importlib.import_module("torch_ocl.distributed")
    raise AttributeError(f"module 'torch.ocl' has no attribute '{name}'")
