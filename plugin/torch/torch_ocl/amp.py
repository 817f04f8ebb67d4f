"""Automatic mixed precision: which types ``torch.autocast("ocl")`` may use."""

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that ``torch.autocast("ocl", dtype=...)`` accepts, the default one first."""
    return [torch.float16, torch.bfloat16]
