"""NCCL on memory that CUDA sees: where its library is, and what it needs."""

import functools
import importlib.util
import os
import pathlib

import torch

from torch_ocl import _C

NEED = (
    "libnccl.so.2 (pip install nvidia-nccl-cu12, or a CUDA build of torch), an NVIDIA device, and "
    "OCLTENSOR_SHARED_MEMORY=1 from the process's start"
)


@functools.cache
def library() -> str:
    """The file of the wheel; empty: the system's."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for file in sorted(pathlib.Path(folder).glob("*/lib/libnccl.so.2")):
            return str(file)
    return ""


def is_available() -> bool:
    try:
        _C.cuda_number(torch.ocl.current_device())
        # Multicast over NVLink asks for memory that was made for it.
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
        return _C.nccl_version(library()) > 0
    except (NotImplementedError, RuntimeError):
        return False
