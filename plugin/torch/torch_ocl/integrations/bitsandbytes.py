"""bitsandbytes: ocl among its devices; 8-bit optimizers. Its other operators are made of PyTorch's
own on devices that have no kernels of theirs, ocl among them."""

from types import ModuleType

import torch

from torch_ocl.integrations._patch import Patch, module


def bitsandbytes(library: ModuleType, patch: Patch) -> None:
    """Changes the whole library, when ``import bitsandbytes`` ends."""
    # transformers refuses quantised models where no device of this set is there.
    patch.set(library, "supported_torch_devices", library.supported_torch_devices | {"ocl"})
    # The one operator without a form for any device. That for the CPU asks for nothing of a CPU.
    update = module("bitsandbytes.backends.cpu.ops")._optimizer_update_8bit_blockwise_cpu
    kernels = torch.library.Library("bitsandbytes", "IMPL")
    patch.on_undo(kernels._destroy)
    kernels.impl("optimizer_update_8bit_blockwise", update, "PrivateUse1")


APPLY = {"bitsandbytes": bitsandbytes}
