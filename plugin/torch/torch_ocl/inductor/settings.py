"""What holds while a graph of ocl is compiled, and no longer: Inductor's settings, lowerings,
choices and patches. Graphs of other devices in the same process are compiled as without ocl."""

import contextlib
from collections.abc import Iterator
from unittest import mock

from torch._inductor import config, lowering

from torch_ocl.inductor import patches
from torch_ocl.inductor.choices import OpenCLChoices
from torch_ocl.inductor.lowerings import lowerings

SETTINGS = {
    "cpp_wrapper": False,
    "layout_optimization": False,  # decides for channels_last by CUDA's numbers
    "comprehensive_padding": False,  # the same for padded rows
    "max_autotune": False,  # there are no templates to choose from
    "max_autotune_gemm": False,
    "max_autotune_pointwise": False,
    "coordinate_descent_tuning": False,
    "combo_kernels": True,
    "combo_kernels_autotune": 0,
    "benchmark_combo_kernel": False,
    "cuda_backend": "triton",  # which types values have, and that all have one
    "triton.codegen_upcast_to_fp32": True,
    "triton.cudagraphs": False,
    "triton.multi_kernel": 0,
    "triton.cooperative_reductions": False,
    "triton.tile_reductions": False,
    "triton.native_matmul": False,
    "triton.mix_order_reduction": False,
    "triton.persistent_reductions": False,
}

_in_force = False


def are_in_force() -> bool:
    return _in_force


def _known(settings: dict[str, object]) -> dict[str, object]:
    """Those that this version of PyTorch has."""
    return {name: value for name, value in settings.items() if name in config._config}


@contextlib.contextmanager
def in_force() -> Iterator[None]:
    from torch._inductor.virtualized import V

    global _in_force
    before, _in_force = _in_force, True
    try:
        with (
            config.patch(_known(SETTINGS)),
            mock.patch.dict(lowering.lowerings, lowerings()),
            V.set_choices_handler(OpenCLChoices()),
            patches.applied(),
        ):
            yield
    finally:
        _in_force = before
