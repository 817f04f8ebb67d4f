"""What Dynamo and Inductor ask of a device type: its streams, its properties, and how generated
Python names them."""

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface
from torch._inductor.codegen.common import DeviceOpOverrides


class OpenCLInterface(DeviceInterface):
    device = torch.ocl.device
    Event = torch.ocl.Event
    Stream = torch.ocl.Stream

    class Worker:
        set_device = staticmethod(torch.ocl.set_device)
        current_device = staticmethod(torch.ocl.current_device)

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return torch.ocl.get_device_properties(device)

    current_device = staticmethod(torch.ocl.current_device)
    set_device = staticmethod(torch.ocl.set_device)
    device_count = staticmethod(torch.ocl.device_count)
    is_available = staticmethod(torch.ocl.is_available)
    stream = staticmethod(torch.ocl.stream)
    current_stream = staticmethod(torch.ocl.current_stream)
    set_stream = staticmethod(torch.ocl.set_stream)
    synchronize = staticmethod(torch.ocl.synchronize)
    get_device_properties = staticmethod(torch.ocl.get_device_properties)
    memory_allocated = staticmethod(torch.ocl.memory_allocated)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return 0  # launches go to the current stream by themselves

    @staticmethod
    def exchange_device(device: int) -> int:
        previous = torch.ocl.current_device()
        torch.ocl.set_device(device)
        return previous

    maybe_exchange_device = exchange_device

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return ""

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return True


class OpenCLOpOverrides(DeviceOpOverrides):
    def import_get_raw_stream_as(self, name: str) -> str:
        return f"{name} = lambda _: 0"

    def set_device(self, device_idx: int) -> str:
        return f"torch.ocl.set_device({device_idx})"

    def synchronize(self) -> str:
        return "torch.ocl.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.ocl.device({device_idx})"

    def current_stream(self) -> str:
        return "torch.ocl.current_stream()"
