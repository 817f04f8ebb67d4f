"""Automatic mixed precision: which types ``torch.autocast("ocl")`` may use.

Operators follow PyTorch's lists for CUDA: products and convolutions run in the lower precision,
operators that need range or digits in float32. float16 needs ``torch.amp.GradScaler("ocl")``;
bfloat16 does not.
Kernels load and store 16-bit types and compute in float32, so autocast saves memory and
bandwidth, not arithmetic.

>>> scaler = torch.amp.GradScaler("ocl")
>>> with torch.autocast("ocl"):
...     loss = loss_function(model(x), y)
>>> scaler.scale(loss).backward()
>>> scaler.step(optimizer)  # skipped if a gradient is infinite or NaN
>>> scaler.update()
"""

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that ``torch.autocast("ocl", dtype=...)`` accepts, the default one first."""
    return [torch.float16, torch.bfloat16]
