"""Kernels for groups of fused nodes, and their names."""

import re
from typing import Any

from torch._inductor import config
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.utils import get_fused_kernel_name, get_kernel_metadata
from torch._inductor.virtualized import V

from torch_ocl.inductor import settings
from torch_ocl.inductor.kernel import OpenCLKernel
from torch_ocl.inductor.refusals import refuse
from torch_ocl.inductor.report import report

LONGEST_NAME = 100
"""PoCL 3.1 makes file names of kernels' names, and ends the process where they are too long."""


class OpenCLScheduling(SIMDScheduling):
    kernel_type = OpenCLKernel

    def __init__(self, scheduler: Any) -> None:
        if scheduler is not None and not settings.are_in_force():
            refuse()
        super().__init__(scheduler)

    def define_kernel(self, src_code: str, node_schedule: Any, kernel: OpenCLKernel) -> str:
        """Writes the kernel's text into the wrapper, once, and returns its name there."""
        wrapper = V.graph.wrapper_code
        if src_code in wrapper.src_to_kernel:
            return wrapper.src_to_kernel[src_code]
        naming = config.triton.descriptive_names  # False for names that tell nothing
        fused = get_fused_kernel_name(node_schedule, naming) if naming else "kernel"
        fused = re.sub(r"\W", "_", fused)
        suffix = wrapper.next_kernel_suffix()
        name = f"ocl_{fused[: LONGEST_NAME - len(suffix) - 5]}_{suffix}"
        wrapper.src_to_kernel[src_code] = name
        report.note_kernel(name)
        origins, _ = get_kernel_metadata(node_schedule, wrapper)
        index = V.graph.get_current_device_or_throw().index
        fixed = f", {kernel.range_text()}" if kernel.has_fixed_range() else ""
        wrapper.header.splice(f"\n{origins}\n{name} = ocl_kernels.define({index}, {name!r}, r'''")
        wrapper.header.splice(src_code.replace("KERNEL_NAME", name))
        wrapper.header.splice(f"'''{fixed})")
        return name
