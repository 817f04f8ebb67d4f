"""The module ``torch.backends.ocl``: version, switches, and reports.

>>> torch.backends.ocl.benchmark = True  # measure algorithms, once per device and class of shapes
>>> with torch.backends.ocl.flags(deterministic=True), torch.backends.ocl.verbose(1):
...     model(x)  # prints each choice of an algorithm with the reasons
>>> with torch.backends.ocl.operations_disabled("linalg_*"):
...     model(x)  # these run on the CPU, if OCLTENSOR_ENABLE_FALLBACK is 1

Switches hold for the whole process, including all threads and the autograd engine's. Contexts nest,
also across threads, work as decorators, and restore the values before them, also after exceptions.

choice of algorithms
    ``enabled``, ``deterministic``, ``benchmark``, ``benchmark_limit``, ``keep_measurements``,
    ``immediate``, ``flags``, ``verbose``, ``algorithms_disabled``; ``matmul``,
    ``preferred_blas_library``, ``preferred_linalg_library``; which algorithms there are, and which
    ran: ``algorithms``, ``last_choices``, ``measurements``
kernel providers and operators
    ``all_providers``, ``available_providers``, and a controller of each provider (``portable``,
    ``nvidia_hopper``, ...); ``disable_operations``, ``enable_operations``, ``operations_disabled``
quantised weights
    ``weight_int4``, ``weight_int8``, ``quantized``: ``is_available()``, ``reason``,
    ``supported_formats``, ``formats_by_provider``
attention
    ``enable_flash_sdp``, ``can_use_efficient_attention`` and so on, as in ``torch.backends.cuda``
settings
    every switch is one, with an environment variable: ``settings``, ``get_setting``,
    ``set_setting``
"""

import sys
import types
from typing import Any

from torch._C import _SDPAParams as SDPAParams

from torch_ocl import _C
from torch_ocl.backends import _providers
from torch_ocl.backends._attention import (
    allow_fp16_bf16_reduction_math_sdp,
    can_use_efficient_attention,
    can_use_flash_attention,
    enable_flash_sdp,
    enable_math_sdp,
    enable_mem_efficient_sdp,
    flash_sdp_enabled,
    fp16_bf16_reduction_math_sdp_allowed,
    is_flash_attention_available,
    math_sdp_enabled,
    mem_efficient_sdp_enabled,
    sdp_kernel,
)
from torch_ocl.backends._fft import FftPlanCache, FftPlanCacheManager
from torch_ocl.backends._matmul import (
    BF16,
    FP16,
    MatmulModule,
    preferred_blas_library,
    preferred_linalg_library,
    reduction_text,
)
from torch_ocl.backends._providers import (
    Algorithm,
    Measurement,
    ProviderController,
    algorithms,
    algorithms_disabled,
    disable_dispatch_keys,
    disable_operations,
    disabled_operations,
    enable_dispatch_keys,
    enable_operations,
    forget_measurements,
    get_provider_operations,
    is_operation_disabled,
    last_choices,
    measurements,
    operations_disabled,
)
from torch_ocl.backends._scope import BoolSwitch, IntSwitch, Scope, text_of_bool
from torch_ocl.backends._weights import ALL, INT4, INT8, Quantized, Weights
from torch_ocl.device import DeviceLike, get_device_properties, is_available, is_built

__all__ = [
    "Algorithm",
    "FftPlanCache",
    "Measurement",
    "ProviderController",
    "SDPAParams",
    "algorithms",
    "algorithms_disabled",
    "all_providers",
    "allow_fp16_bf16_reduction_math_sdp",
    "available_providers",
    "benchmark",
    "benchmark_limit",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "deterministic",
    "disable_dispatch_keys",
    "disable_operations",
    "disabled_operations",
    "enable_dispatch_keys",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "enable_operations",
    "enabled",
    "fft_plan_cache",
    "flags",
    "flash_sdp_enabled",
    "forget_measurements",
    "fp16_bf16_reduction_math_sdp_allowed",
    "get_device_capability",
    "get_provider_operations",
    "get_setting",
    "immediate",
    "keep_measurements",
    "is_available",
    "is_built",
    "is_flash_attention_available",
    "is_operation_disabled",
    "last_choices",
    "math_sdp_enabled",
    "matmul",
    "measurements",
    "mem_efficient_sdp_enabled",
    "operations_disabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "quantized",
    "sdp_kernel",
    "set_setting",
    "settings",
    "verbose",
    "version",
    "weight_int4",
    "weight_int8",
]

matmul = MatmulModule()
fft_plan_cache = FftPlanCacheManager()
weight_int4 = Weights(INT4)
weight_int8 = Weights(INT8)
quantized = Quantized(ALL)


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
    """Changes a setting at run time; the value takes precedence over the environment.

    ``value`` is text, a number or a bool. RuntimeError, with the accepted range, for a wrong one.
    """
    text = str(int(value)) if isinstance(value, bool) else str(value)
    _C.set_setting(name, text)


def flags(
    *,
    enabled: bool | None = None,
    deterministic: bool | None = None,
    benchmark: bool | None = None,
    benchmark_limit: int | None = None,
    keep_measurements: bool | None = None,
    immediate: bool | None = None,
    allow_tf32: bool | None = None,
    allow_int8_activations: bool | None = None,
    allow_fp16_reduced_precision_reduction: bool | tuple[bool, bool] | None = None,
    allow_bf16_reduced_precision_reduction: bool | tuple[bool, bool] | None = None,
) -> Scope:
    """A context, or decorator, with some switches set.

    Switches that are not given keep their values (``torch.backends.cudnn.flags`` resets them).
    """
    values: list[tuple[str, str]] = []
    for setting, value in (
        ("OCLTENSOR_TUNED_KERNELS", enabled),
        ("OCLTENSOR_DETERMINISTIC", deterministic),
        ("OCLTENSOR_BENCHMARK", benchmark),
        ("OCLTENSOR_KEEP_MEASUREMENTS", keep_measurements),
        ("OCLTENSOR_IMMEDIATE", immediate),
        ("OCLTENSOR_ALLOW_TF32", allow_tf32),
        ("OCLTENSOR_ALLOW_INT8_ACTIVATIONS", allow_int8_activations),
    ):
        if value is not None:
            values.append((setting, text_of_bool(setting, value)))
    if benchmark_limit is not None:
        values.append(("OCLTENSOR_BENCHMARK_LIMIT", str(int(benchmark_limit))))
    for setting, pair in (
        (FP16, allow_fp16_reduced_precision_reduction),
        (BF16, allow_bf16_reduced_precision_reduction),
    ):
        if pair is not None:
            values.append((setting, reduction_text(pair, setting)))
    return Scope(lambda: values)


def verbose(level: int = 1) -> Scope:
    """A context, or decorator, that prints to standard error.

    Args:
        level: 1: each choice of an algorithm with the reasons; 2: each operator, too; 0: neither
    """
    return Scope(lambda: [("OCLTENSOR_VERBOSE", str(int(level)))])


# Names of torch.backends without kernels for this device, which the AttributeError mentions.
_ABSENT = {
    "cusparselt": "2:4 semi-structured sparse matrices",
}


class _Module(types.ModuleType):
    """The module's class: switches as attributes."""

    enabled = BoolSwitch(
        "OCLTENSOR_TUNED_KERNELS",
        "Whether algorithms made for some shapes may run; otherwise only the general ones run.",
    )
    deterministic = BoolSwitch(
        "OCLTENSOR_DETERMINISTIC",
        "Whether results are the same bit for bit in every run: no writes race, and no algorithm "
        "is chosen by measuring. ``torch.use_deterministic_algorithms(True)`` does the same.",
    )
    benchmark = BoolSwitch(
        "OCLTENSOR_BENCHMARK",
        "Whether algorithms of matrix products and convolutions are measured, once per device and "
        "class of shapes, and the fastest is used.",
    )
    benchmark_limit = IntSwitch(
        "OCLTENSOR_BENCHMARK_LIMIT", "How many algorithms ``benchmark`` tries; 0: all."
    )
    keep_measurements = BoolSwitch(
        "OCLTENSOR_KEEP_MEASUREMENTS",
        "Whether measurements of ``benchmark`` are kept in the cache folder, and choose algorithms "
        "in this and "
        "later processes, also if ``benchmark`` is off. ``forget_measurements()`` removes them.",
    )
    immediate = BoolSwitch(
        "OCLTENSOR_IMMEDIATE",
        "Whether algorithms are chosen by rule whatever ``benchmark`` says.",
    )

    @property
    def all_providers(self) -> list[str]:
        """The names of the kernel providers, in the order in which they are tried."""
        return _providers.all_providers()

    @property
    def available_providers(self) -> list[str]:
        """The names of the providers that this version has."""
        return _providers.available_providers()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return _providers.controller(name)
            except (RuntimeError, ValueError):  # no plugin, or no provider
                pass
        why = f": there are no kernels for {_ABSENT[name]}" if name in _ABSENT else ""
        raise AttributeError(f"module 'torch.backends.ocl' has no attribute {name!r}{why}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self.__dict__ and not hasattr(_Module, name):
            raise AttributeError(f"torch.backends.ocl has no switch {name!r}")
        super().__setattr__(name, value)


# Attributes of the module's class; here for type checkers.
all_providers: list[str]
available_providers: list[str]
enabled: bool
deterministic: bool
benchmark: bool
benchmark_limit: int
keep_measurements: bool
immediate: bool

sys.modules[__name__].__class__ = _Module
