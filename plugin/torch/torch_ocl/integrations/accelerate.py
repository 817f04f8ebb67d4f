"""accelerate: ocl as the default device, fp16, ``device_map="auto"``, offloading, random states,
several processes."""

import inspect
import os
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
    patch.replace(state.PartialState, "set_device", set_device)
    patch.replace(state.PartialState, "wait_for_everyone", wait_for_everyone)
    # DistributedDataParallel's device: as on HPUs the process's own, not that of its number.
    patch.replace(library.Accelerator, "prepare_model", prepare_model)
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
        if cpu or kind.value != "NO" or _device.chosen() is None:
            return backend, kind
        if not os.environ.get("LOCAL_RANK", "").isdecimal():
            _device.check_launcher()
            return backend, kind
        return backend or "ocl", type(kind).MULTI_GPU  # of CUDA, and else of any accelerator

    return _prepare_backend


def set_device(old: Any) -> Any:
    def set_device(self: Any) -> None:
        is_ours = self.distributed_type.value == "MULTI_GPU" and _device.chosen() is not None
        # ACCELERATE_TORCH_DEVICE may have named it, without a number.
        if is_ours and (self.device is None or self.device == torch.device("ocl")):
            self.device = _device.of_process(self.local_process_index)
            torch.ocl.set_device(self.device)
        old(self)

    return set_device


def wait_for_everyone(old: Any) -> Any:
    def wait_for_everyone(self: Any) -> None:
        if self.device.type == "ocl" and self.use_distributed:
            torch.distributed.barrier(device_ids=[self.device.index])  # not the process's number
        else:
            old(self)

    return wait_for_everyone


def prepare_model(old: Any) -> Any:
    ours = with_constant(old, "hpu", "ocl")

    def prepare_model(self: Any, *args: Any, **kwargs: Any) -> Any:
        return (ours if self.device.type == "ocl" else old)(self, *args, **kwargs)

    return prepare_model


def get_grad_scaler(old: Any) -> Any:
    def get_grad_scaler(distributed_type: Any = None, **kwargs: Any) -> Any:
        # Else the last resort is a scaler for CUDA, which is switched off without CUDA.
        if module("accelerate.state").PartialState().device.type != "ocl":
            return old(distributed_type, **kwargs)
        if distributed_type is not None and distributed_type.value == "FSDP":
            return old(distributed_type, device="ocl", **kwargs)
        return torch.amp.GradScaler("ocl", **kwargs)

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


def launch(library: ModuleType, patch: Patch) -> None:
    """``accelerate launch`` counts the devices of types that it knows, and starts one process where
    it found none."""

    def make(old: Any) -> Any:
        def _validate_launch_command(args: Any) -> Any:
            args, defaults, *rest = old(args)
            other = ("multi_gpu", "cpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm")
            if defaults is None and _device.chosen() is not None and not args.cpu:
                args.num_processes = args.num_processes or _device.count_alike()
                if args.num_processes > 1 and not any(getattr(args, name) for name in other):
                    args.multi_gpu = True
            return args, defaults, *rest

        return _validate_launch_command

    patch.replace(library, "_validate_launch_command", make)


APPLY = {"accelerate": accelerate, "accelerate.commands.launch": launch}
