"""Whether ``import torch`` also registers ``ocl``: not where torch has another accelerator to use.

PyTorch has one accelerator in a process, and a registered out-of-tree device is it:
``torch.accelerator`` would name ``ocl``, and backward passes on CUDA tensors fail inside torch's
engine (an assertion on streams, torch 2.11). ``OCLTENSOR_AUTOLOAD`` decides otherwise.
"""

import os
import pathlib

import torch

SETTING = "OCLTENSOR_AUTOLOAD"
# A name for torch's build, its version's attribute, and device files, one of which exists where
# the driver runs. Files, because asking CUDA itself would make a later fork unable to use it.
_ACCELERATORS = (
    ("CUDA", "cuda", ("nvidiactl", "nvidia0", "dxg")),
    ("ROCm", "hip", ("kfd",)),
    ("XPU", "xpu", ("dri/renderD128",)),
)


def other_accelerator(folder: str = "/dev") -> str | None:
    """The accelerator that this torch was built for and whose driver runs here: its name."""
    for name, attribute, files in _ACCELERATORS:
        if getattr(torch.version, attribute, None) is not None:
            if any(pathlib.Path(folder, file).exists() for file in files):
                return name
    return None


def reason_to_wait() -> str | None:
    """Why ``import torch`` alone leaves ``ocl`` unregistered, or None."""
    wish = os.environ.get(SETTING, "")
    if wish == "0":
        return f"{SETTING}=0 leaves it to `import torch_ocl`"
    other = None if wish else other_accelerator()
    if other is None:
        return None
    return (
        f"torch was built for {other}, whose driver runs here, and a process has one accelerator: "
        f"`import torch_ocl` makes it ocl, {SETTING}=1 does so whenever torch is imported"
    )
