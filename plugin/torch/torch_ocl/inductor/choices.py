"""Choices of Inductor that depend on a device's parallelism."""

import torch
from torch._inductor.choices import InductorChoices

from torch_ocl.inductor.target import Target

_PIECE = 16384  # elements of a piece of a long row, at least


class OpenCLChoices(InductorChoices):
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
        target, units = Target.of(device), torch.ocl.get_device_properties(device).compute_units
        busy = 4 * units if target.style == "cpu" else 4 * units * target.group // 64
        results = max(1, numel_hint if inner_reduction else numel_hint // 16)
        wanted = busy // results
        return max(1, min(wanted, reduction_numel_hint // _PIECE))
