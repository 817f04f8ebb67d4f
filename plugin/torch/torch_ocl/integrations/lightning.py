"""Lightning: ``OclAccelerator``, chosen by ``accelerator="ocl"``, and by "auto" and "gpu"."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from torch_ocl.integrations import _device
from torch_ocl.integrations._patch import Patch, module, with_constant

FORKING = ("ddp_fork", "ddp_notebook")  # the begins of their names


def fabric(library: ModuleType, patch: Patch) -> None:
    accelerators = module("lightning.fabric.accelerators")
    _register(patch, accelerators, accelerators.ACCELERATOR_REGISTRY)
    _connect(patch, library._Connector, accelerators.OclAccelerator)
    strategies = "lightning.fabric.strategies"
    ddp = module(f"{strategies}.ddp").DDPStrategy
    patch.replace(ddp, "_determine_ddp_device_ids", no_device_ids)
    _fsdp(patch, module(f"{strategies}.fsdp"), module("lightning.fabric.plugins.precision.fsdp"))


def trainer(library: ModuleType, patch: Patch) -> None:
    accelerators = module("lightning.pytorch.accelerators")
    _register(patch, accelerators, accelerators.AcceleratorRegistry)
    _connect(patch, library._AcceleratorConnector, accelerators.OclAccelerator)
    patch.replace(module("lightning.pytorch.utilities.seed"), "isolate_rng", isolate)
    strategies = "lightning.pytorch.strategies"
    ddp = module(f"{strategies}.ddp").DDPStrategy
    patch.replace(ddp, "determine_ddp_device_ids", no_device_ids)
    patch.replace(ddp, "_register_ddp_hooks", on_our_devices)
    _fsdp(patch, module(f"{strategies}.fsdp"), module("lightning.pytorch.plugins.precision.fsdp"))


def isolate(old: Any) -> Any:
    """What Trainer's check before training and its search for a learning rate run in."""

    @contextmanager
    def isolate_rng(include_cuda: bool = True) -> Iterator[None]:
        known = include_cuda and torch.ocl.is_initialized()
        states = torch.ocl.get_rng_state_all() if known else None
        with old(include_cuda):
            yield
        if states is not None:
            torch.ocl.set_rng_state_all(states)

    return isolate_rng


def no_device_ids(old: Any) -> Any:
    """With a device's index they set the model up in a stream of CUDA; without one
    DistributedDataParallel takes the device from the parameters."""

    def ids(self: Any) -> list[int] | None:
        return None if self.root_device.type == "ocl" else old(self)

    return ids


def on_our_devices(old: Any) -> Any:
    """A method of a strategy with the name of our devices instead of CUDA's."""
    ours = with_constant(old, "cuda", "ocl")

    def method(self: Any) -> Any:
        return (ours if self.root_device.type == "ocl" else old)(self)

    return method


def _fsdp(patch: Patch, strategy: ModuleType, precision: ModuleType) -> None:
    """Meshes, autocast and the scaler name CUDA. Precisions do not know their strategy's device."""

    def autocast(old: Any) -> Any:
        ours = with_constant(old, "cuda", "ocl")

        def forward_context(self: Any) -> Any:
            return (old if _device.chosen() is None else ours)(self)

        return forward_context

    def scale(old: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            with warnings.catch_warnings():
                if _device.chosen() is not None:
                    warnings.filterwarnings("ignore", ".*CUDA is not available", UserWarning)
                old(self, *args, **kwargs)
            if self.scaler is not None and _device.chosen() is not None:
                self.scaler = type(self.scaler)(device="ocl")

        return __init__

    patch.replace(strategy.FSDPStrategy, "setup_environment", on_our_devices)
    patch.replace(precision.FSDPPrecision, "forward_context", autocast)
    patch.replace(precision.FSDPPrecision, "__init__", scale)


def _register(patch: Patch, accelerators: ModuleType, registry: Any) -> None:
    accelerator = make_accelerator(accelerators.Accelerator)
    # Where it is found: a Trainer that is pickled has one.
    accelerator.__module__, accelerator.__qualname__ = accelerators.__name__, "OclAccelerator"
    patch.set(accelerators, "OclAccelerator", accelerator)
    registry.register("ocl", accelerator, description="OpenCL devices")
    patch.on_undo(lambda: registry.remove("ocl"))


def make_accelerator(base: Any) -> Any:
    """The class for Trainer or for Fabric, which have different bases."""

    class OclAccelerator(base):
        """OpenCL devices by torch_ocl, one for each process."""

        def setup_device(self, device: torch.device) -> None:
            if device.type != "ocl":
                raise ValueError(f"Device should be ocl, got {device} instead.")
            torch.ocl.set_device(device)

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return torch.ocl.memory_stats(device)

        def teardown(self) -> None:
            torch.ocl.empty_cache()

        @staticmethod
        def parse_devices(devices: int | str | list[int]) -> list[int]:
            """Indices of ``devices``: a number of devices, "1, 3" or [1, 3]; -1: all.

            A number may exceed that of devices where these are CPUs, which processes share.
            """
            count = torch.ocl.device_count()
            if isinstance(devices, str) and ("," in devices or devices.strip() == "0"):
                devices = [int(part) for part in devices.split(",") if part.strip()]
            if isinstance(devices, (int, str)):
                wanted = int(devices)
                devices = list(range(count if wanted == -1 else wanted))
                count = max(count, len(devices)) if _device.are_cpus() else count
            if not all(type(index) is int for index in devices):
                known = "an int, a string, a sequence of ints"
                raise TypeError(f"devices must be {known}, but you gave {devices!r}")
            if not devices or not set(devices) <= set(range(count)):
                raise ValueError(f"devices={devices}: there are {count} ocl devices")
            if len(set(devices)) < len(devices):
                raise ValueError(f"devices={devices}: a device stands there twice")
            return list(devices)

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [_device.of_process(index) for index in devices]

        @staticmethod
        def auto_device_count() -> int:
            return _device.count_alike()

        @staticmethod
        def is_available() -> bool:
            return torch.ocl.is_available()

        @staticmethod
        def name() -> str:
            return "ocl"

        @classmethod
        def register_accelerators(cls, accelerator_registry: Any) -> None:
            accelerator_registry.register(cls.name(), cls, description=cls.__name__)

    return OclAccelerator


def check_strategy(strategy: Any) -> None:
    """ValueError for a strategy that cannot run on ocl."""
    name = strategy if isinstance(strategy, str) else type(strategy).__name__
    forks = getattr(strategy, "_start_method", None) == "fork" or name.startswith(FORKING)
    if forks:
        why = "a forked process cannot use its parent's devices: say ddp or ddp_spawn"
    elif name in ("dp", "DataParallelStrategy") or name.lower().startswith("deepspeed"):
        why = "it needs CUDA: say ddp or fsdp"
    else:
        return
    raise ValueError(f"strategy={name} does not run on ocl: {why}")


def _connect(patch: Patch, connector: Any, accelerator: Any) -> None:
    """Where Trainer and Fabric look for accelerators, and where they name devices."""

    def auto(old: Any) -> Any:
        def _choose_auto_accelerator() -> str:
            found = old.__func__()
            return "ocl" if found == "cpu" and _device.chosen() else found

        return staticmethod(_choose_auto_accelerator)

    def gpu(old: Any) -> Any:
        def _choose_gpu_accelerator_backend() -> str:
            return "ocl" if _device.chosen() else old.__func__()

        return staticmethod(_choose_gpu_accelerator_backend)

    def init(old: Any) -> Any:
        def _set_parallel_devices_and_init_accelerator(self: Any) -> None:
            old(self)
            if isinstance(self.accelerator, accelerator):  # it may have been given as an object
                self._accelerator_flag = "ocl"
                check_strategy(self._strategy_flag)

        return _set_parallel_devices_and_init_accelerator

    patch.replace(connector, "_choose_auto_accelerator", auto)
    patch.replace(connector, "_choose_gpu_accelerator_backend", gpu)
    patch.replace(connector, "_set_parallel_devices_and_init_accelerator", init)
    # The device of a single one, which is else the CPU, and that of autocast, which is else CUDA.
    patch.extend_list(connector._choose_strategy, "mps", "ocl")
    patch.extend_list(connector._check_and_init_precision, "mps", "ocl")
    patch.extend_list(connector._check_strategy_and_fallback, "gpu", "ocl")


APPLY = {
    "lightning.fabric.connector": fabric,
    "lightning.pytorch.trainer.connectors.accelerator_connector": trainer,
}
