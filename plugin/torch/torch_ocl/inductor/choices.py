"""Choices of Inductor that depend on what a device has: its parallelism, a kernel's parameters."""

from typing import Any

import torch
from torch._inductor.choices import InductorChoices

from torch_ocl.inductor.groups import COLUMNS
from torch_ocl.inductor.target import Target

_PIECE = 16384  # elements of a piece of a long row, at least
_ROWS = 128  # of a piece of columns that are added up on a GPU


class OpenCLChoices(InductorChoices):
    @staticmethod
    def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
        """Not nodes that would together name more tensors than a kernel takes; the kernels of lists
        are dealt out later (combo.py)."""
        if not InductorChoices.can_fuse(scheduler, node1, node2, shared_data_score):
            return False
        device = node1.get_device()
        is_ours = isinstance(device, torch.device) and device.type == "ocl"
        if not is_ours or node1.is_foreach() or node2.is_foreach():
            return True
        most = Target.of(device).tensors
        return not scheduler.fusion_prevent_too_many_reads_and_writes(node1, node2, most)

    @staticmethod
    def reduction_split_factor(
        device: torch.device, reduction_numel_hint: int, numel_hint: int, inner_reduction: bool
    ) -> int:
        """Into how many pieces a reduction is split that has few results: as many as keep the
        device busy, none shorter than what a launch costs."""
        if device.type != "ocl":
            return InductorChoices.reduction_split_factor(
                device, reduction_numel_hint, numel_hint, inner_reduction
            )
        target = Target.of(device)
        if target.style == "gpu" and not inner_reduction:
            wanted = 2 * target.units * COLUMNS // max(1, numel_hint)
            wanted = min(wanted, reduction_numel_hint // _ROWS)
            return 1 << (max(1, wanted).bit_length() - 1)
        units = target.units
        busy = 4 * units if target.style == "cpu" else 4 * units * target.group // 64
        results = max(1, numel_hint if inner_reduction else numel_hint // 16)
        wanted = busy // results
        return max(1, min(wanted, reduction_numel_hint // _PIECE))
