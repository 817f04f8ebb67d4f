"""accelerate: ocl as the default device, fp16, ``device_map="auto"``, offloading, random states."""

import inspect
import pathlib
from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations import _device
from torch_ocl.integrations._patch import Patch, module, with_constant


def accelerate(library: ModuleType, patch: Patch) -> None:
    """Changes the whole library, when ``import accelerate`` ends."""
    state, modeling = module("accelerate.state"), module("accelerate.utils.modeling")
    patch.replace(state.PartialState, "default_device", default_device)
    patch.replace(state.PartialState, "_prepare_backend", prepare_backend)
    # The list of devices for fp16 in a function of several hundred lines.
    patch.extend_list(library.Accelerator.__init__, "sdaa", "ocl")
    patch.replace(modeling, "get_grad_scaler", get_grad_scaler)
    patch.replace(modeling, "get_max_memory", get_max_memory)
    patch.replace(modeling, "get_balanced_memory", get_balanced_memory)
    patch.replace(module("accelerate.utils.memory"), "clear_device_cache", clear_device_cache)
    checkpointing = module("accelerate.checkpointing")
    patch.replace(checkpointing, "save_accelerator_state", save_accelerator_state)
    patch.replace(checkpointing, "load_accelerator_state", load_accelerator_state)


def default_device(old: property) -> property:
    def fget(self: Any) -> torch.device:
        device = old.__get__(self)
        found = device.type != "cpu"
        return device if found else _device.chosen() or device

    return property(fget, doc=old.__doc__)


def prepare_backend(old: Any) -> Any:
    def _prepare_backend(self: Any, cpu: bool = False, *args: Any, **kwargs: Any) -> Any:
        backend, kind = old(self, cpu, *args, **kwargs)
        if not cpu and kind.value == "NO" and self.default_device.type == "ocl":
            _device.refuse_several_processes("accelerate")
        return backend, kind

    return _prepare_backend


def get_grad_scaler(old: Any) -> Any:
    def get_grad_scaler(distributed_type: Any = None, **kwargs: Any) -> Any:
        state = module("accelerate.state").PartialState()
        # Else the last resort is a scaler for CUDA, which is switched off without CUDA.
        if state.device.type == "ocl" and state.distributed_type.value == "NO":
            return torch.amp.GradScaler("ocl", **kwargs)
        return old(distributed_type, **kwargs)

    return get_grad_scaler


def get_max_memory(old: Any) -> Any:
    """Devices are integers; accelerate asks CUDA for them where it knows no other accelerator."""

    def get_max_memory(max_memory: dict[Any, Any] | None = None) -> dict[Any, Any]:
        if _device.chosen() is None:
            return old(max_memory)
        if max_memory is None:
            found = {i: torch.ocl.mem_get_info(i)[0] for i in range(torch.ocl.device_count())}
            return found if _all_unified() else found | old(None)
        size = module("accelerate.utils.modeling").convert_file_size_to_int
        for key, value in max_memory.items():
            if isinstance(value, str):  # in place, as transformers reads the numbers from there
                max_memory[key] = size(value)
        ours = sorted(k for k in max_memory if k in range(torch.ocl.device_count()))
        others = old({k: v for k, v in max_memory.items() if k not in ours})
        return {k: max_memory[k] for k in ours} | others

    return get_max_memory


def get_balanced_memory(old: Any) -> Any:
    """It counts devices of a type that it finds by name, and else takes for CUDA's."""
    ours = with_constant(old, "cuda", "ocl")

    def get_balanced_memory(*args: Any, **kwargs: Any) -> dict[Any, Any]:
        return (old if _device.chosen() is None else ours)(*args, **kwargs)

    return get_balanced_memory


def _all_unified() -> bool:
    """Whether devices use the host's memory: a budget for the CPU would count it twice."""
    devices = range(torch.ocl.device_count())
    return all(torch.ocl.get_device_properties(i).has_unified_memory for i in devices)


def clear_device_cache(old: Any) -> Any:
    def clear_device_cache(garbage_collection: bool = False) -> None:
        old(garbage_collection)
        if torch.ocl.is_initialized():
            torch.ocl.empty_cache()

    return clear_device_cache


def save_accelerator_state(old: Any) -> Any:
    signature = inspect.signature(old)

    def save_accelerator_state(*args: Any, **kwargs: Any) -> Any:
        folder = old(*args, **kwargs)
        process = signature.bind(*args, **kwargs).arguments["process_index"]
        _device.save_random_states(pathlib.Path(folder) / f"random_states_ocl_{process}.pt")
        return folder

    return save_accelerator_state


def load_accelerator_state(old: Any) -> Any:
    signature = inspect.signature(old)

    def load_accelerator_state(*args: Any, **kwargs: Any) -> Any:
        result = old(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        file = f"random_states_ocl_{given['process_index']}.pt"
        _device.load_random_states(pathlib.Path(given["input_dir"]) / file)
        return result

    return load_accelerator_state


APPLY = {"accelerate": accelerate}
