"""Registers the compiler's parts with Dynamo and Inductor, when the first graph is compiled."""

import functools

import torch
from torch._dynamo.device_interface import register_interface_for_device
from torch._inductor.codegen.common import (
    get_device_op_overrides,
    register_backend_for_device,
    register_device_op_overrides,
)

from torch_ocl.inductor.graph_pass import GraphPass
from torch_ocl.inductor.interface import OpenCLInterface, OpenCLOpOverrides
from torch_ocl.inductor.refusals import CppWrapper, FxWrapper
from torch_ocl.inductor.scheduling import OpenCLScheduling
from torch_ocl.inductor.wrapper import OpenCLWrapper


@functools.cache
def register() -> None:
    """Once per process."""
    register_interface_for_device("ocl", OpenCLInterface)
    for index in range(torch.ocl.device_count()):
        register_interface_for_device(f"ocl:{index}", OpenCLInterface)
    get_device_op_overrides("cpu")  # torch before 2.13 adds its own to an empty table only
    register_device_op_overrides("ocl", OpenCLOpOverrides())
    register_backend_for_device(
        "ocl",
        OpenCLScheduling,
        OpenCLWrapper,
        CppWrapper,
        FxWrapper,
        device_custom_pass=GraphPass(),
    )
