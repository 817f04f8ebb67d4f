"""Kernels for groups of fused nodes, and their names."""

import re
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.utils import get_fused_kernel_name, get_kernel_metadata
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from torch_ocl.inductor import combo, settings
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

    def get_backend_features(self, device: torch.device) -> OrderedSet[BackendFeature]:
        """Operators on lists of tensors are fused as lists."""
        return OrderedSet([BackendFeature.FOREACH])

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

    def codegen_combo_kernel(self, combo_kernel_node: Any) -> None:
        """Several kernels in as few launches as can be."""
        lists: list[list[OpenCLKernel]] = []
        members, schedules = [], {}
        for part in combo_kernel_node.get_subkernel_nodes():
            nodes = [n for n in part.get_nodes() if n.get_name() not in self.scheduler.removed_ops]
            if not nodes:
                continue
            kernel, schedule = self._member(nodes)
            schedules[kernel] = schedule
            if combo.can_be_member(kernel.numels):
                members.append(kernel)
            else:
                lists.append([kernel])
        for together in [*lists, *combo.launches_of(members)]:
            schedule = [node for kernel in together for node in schedules[kernel]]
            one = together[0] if len(together) == 1 else combo.ComboKernel(together)
            with V.set_kernel_handler(together[0]):
                source = one.codegen_kernel()
            name = self.define_kernel(source, schedule, one)
            self.codegen_comment(schedule, name)
            with V.set_kernel_handler(together[0]):
                one.call_kernel(name)
        self.free_buffers_in_scheduler()

    def _member(self, nodes: list[Any]) -> tuple[OpenCLKernel, list[Any]]:
        """A kernel for fused nodes, all but its text, and the order of their code."""
        numel, reduced = max(nodes, key=lambda node: int(node.is_reduction())).group[1]
        schedule = self.generate_node_schedule(nodes, numel, reduced)
        tiling = self.select_tiling(schedule, numel, reduced)
        kernel = self.kernel_type(tiling, features=SIMDKernelFeatures(schedule, numel, reduced))
        self.process_kernel(kernel, schedule)
        return kernel, schedule
