"""Makes ComfyUI use an OpenCL device: changes ``comfy.model_management`` when that is imported.

ComfyUI knows its devices by name, and asks CUDA where it knows none of them: without CUDA it does
not start unless it is told to use the CPU. So this file waits for that module's import, lets it
start as for the CPU, and then replaces what names devices. ``--cpu`` and ``--directml`` are left
alone, and so is a torch that has found CUDA or XPU. It imports torch no earlier than ComfyUI does.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import logging
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

MODULE = "comfy.model_management"


def install() -> None:
    """Waits for the module."""
    if MODULE in sys.modules:
        logging.warning("ocl: %s was imported too early and is left as it is", MODULE)
    else:
        sys.meta_path.insert(0, Finder())


class Finder(importlib.abc.MetaPathFinder):
    """Finds the one module as all others are found, and wraps its loader."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader)
        return spec


class Loader(importlib.abc.Loader):
    """Runs the module's code as for the CPU, and changes it, where ocl is to be used."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        from comfy.cli_args import args

        reason = why_not(args)
        if reason:
            logging.info("ocl: not used: %s", reason)
            self.own.exec_module(module)
            return
        args.cpu = True
        try:
            self.own.exec_module(module)
            replaced = replacements(module, args)
            for name in replaced:
                getattr(module, name)
        except AttributeError as error:
            logging.warning("ocl: an unknown ComfyUI is left as it is, on the CPU: %s", error)
            return
        finally:
            args.cpu = False
        vars(module).update(replaced)
        module.total_vram = module.get_total_memory() / 2**20
        logging.info("ocl: using %s", module.get_torch_device_name(module.get_torch_device()))


def why_not(args: Any) -> str:
    """Why ocl is not used, or an empty text."""
    import torch

    try:
        import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
    except ImportError as error:
        return str(error)
    if args.cpu or args.directml is not None:
        return "another device was asked for"
    if torch.cuda.is_available() or torch.xpu.is_available():
        return "torch has found another accelerator"
    return "" if torch.ocl.is_available() else torch.ocl.unavailable_reason()


def replacements(management: ModuleType, args: Any) -> dict[str, Any]:
    """Names of ComfyUI's module and what they become."""
    import torch

    properties = torch.ocl.get_device_properties()
    attention = not (args.use_split_cross_attention or args.use_quad_cross_attention)
    return {
        "cpu_state": management.CPUState.GPU,
        "vram_state": vram_state(management.VRAMState, args, properties.has_unified_memory),
        "ENABLE_PYTORCH_ATTENTION": attention,
        "pytorch_attention_flash_attention": lambda: attention,
        "is_nvidia": lambda: False,  # by the build of torch, else
        "is_amd": lambda: False,
        # Beside the functions that are replaced here, rotary embeddings alone ask for it: whether
        # float64 is to be avoided.
        "is_directml_enabled": lambda: not properties.has_fp64,
        "soft_empty_cache": lambda force=False: torch.ocl.empty_cache(),
        **devices(management, args),
        **memory(management),
        **types(management, args, properties.kind),
    }


def vram_state(states: Any, args: Any, unified: bool) -> Any:
    """What the user asked for; without it, models are loaded onto devices that share the host's
    memory at once, and otherwise when they are needed."""
    if args.lowvram:
        return states.LOW_VRAM
    if args.novram:
        return states.NO_VRAM
    if args.highvram or args.gpu_only:
        return states.HIGH_VRAM
    return states.SHARED if unified else states.NORMAL_VRAM


def devices(management: ModuleType, args: Any) -> dict[str, Callable[..., Any]]:
    import torch

    old_name = management.get_torch_device_name

    def get_torch_device() -> torch.device:
        return torch.device("ocl", torch.ocl.current_device())

    def get_torch_device_name(device: Any) -> str:
        if is_ours(device):
            return f"{device} {torch.ocl.get_device_name(device)}"
        return old_name(device)

    def text_encoder_device() -> torch.device:
        low = (management.VRAMState.LOW_VRAM, management.VRAMState.NO_VRAM)
        on_cpu = management.vram_state in low and not args.gpu_only
        return torch.device("cpu") if on_cpu else get_torch_device()

    return {f.__name__: f for f in (get_torch_device, get_torch_device_name, text_encoder_device)}


def memory(management: ModuleType) -> dict[str, Callable[..., Any]]:
    """Bytes of the device, and of those torch has reserved and does not use."""
    import torch

    old_total, old_free = management.get_total_memory, management.get_free_memory

    def get_total_memory(dev: Any = None, torch_total_too: bool = False) -> Any:
        dev = management.get_torch_device() if dev is None else dev
        if not is_ours(dev):
            return old_total(dev, torch_total_too)
        total = torch.ocl.get_device_properties(dev).total_memory
        return (total, torch.ocl.memory_reserved(dev)) if torch_total_too else total

    def get_free_memory(dev: Any = None, torch_free_too: bool = False) -> Any:
        dev = management.get_torch_device() if dev is None else dev
        if not is_ours(dev):
            return old_free(dev, torch_free_too)
        cached = torch.ocl.memory_reserved(dev) - torch.ocl.memory_allocated(dev)
        free = torch.ocl.mem_get_info(dev)[0]
        if torch.ocl.get_device_properties(dev).has_unified_memory:
            free = min(free, old_free(torch.device("cpu")))
        return (free + cached, cached) if torch_free_too else free + cached

    return {f.__name__: f for f in (get_total_memory, get_free_memory)}


def types(management: ModuleType, args: Any, kind: str) -> dict[str, Callable[..., Any]]:
    """On GPUs 16 bits, which halve the traffic also where float32 is computed in; CPU drivers are
    faster in float32."""

    def choice(name: str) -> Callable[..., bool]:
        old = getattr(management, name)

        def should_use(device: Any = None, *rest: Any, **options: Any) -> bool:
            if device is not None and not is_ours(device):
                return old(device, *rest, **options)
            if name == "should_use_fp16" and args.force_fp16:
                return True
            return kind != "cpu" and not args.force_fp32

        return should_use

    return {name: choice(name) for name in ("should_use_fp16", "should_use_bf16")}


def is_ours(device: Any) -> bool:
    return getattr(device, "type", None) == "ocl"
