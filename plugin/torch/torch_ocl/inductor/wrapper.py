"""The Python around the kernels of a graph: what it imports, and how it calls a kernel."""

from typing import Any

import torch
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.virtualized import V


class _Calls:
    """A kernel is a function of its arguments; one whose range varies takes them as a tuple, and
    then the range."""

    def _generate_kernel_call_helper(
        self, kernel_name: str, call_args: Any, *, device: Any = None, **options: Any
    ) -> None:
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "ocl":
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **options)
            return
        self.writeline(f"{kernel_name}({', '.join(map(str, call_args))})")

    # Kernels know their device, but tensors are made on the current one.
    def codegen_device_guard_enter(self, *args: Any, **options: Any) -> None:
        if torch.ocl.device_count() > 1:
            super().codegen_device_guard_enter(*args, **options)

    def codegen_device_guard_exit(self) -> None:
        if torch.ocl.device_count() > 1:
            super().codegen_device_guard_exit()


class OpenCLSubgraphWrapper(_Calls, SubgraphPythonWrapperCodegen):
    pass


class OpenCLWrapper(_Calls, PythonWrapperCodegen):
    @staticmethod
    def create(
        is_subgraph: bool, subgraph_name: Any, parent_wrapper: Any, partition_signatures: Any = None
    ) -> Any:
        if is_subgraph:
            return OpenCLSubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return OpenCLWrapper()

    def write_header(self) -> None:
        super().write_header()
        self.header.splice("""
            from torch_ocl.inductor.runtime import Kernels
            ocl_kernels = Kernels()
            """)

    def write_async_compile_wait(self) -> None:
        super().write_async_compile_wait()
        self.prefix.splice("ocl_kernels.compile(globals())")

    def generate_end(self, result: Any) -> None:
        super().generate_end(result)
        result.splice("ocl_kernels.plan(globals())")
