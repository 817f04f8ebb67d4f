// Shared memory for Python: DLPack's capsules of CUDA, and storages of other processes.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

void bind_shared_memory(pybind11::module_& module);

}  // namespace torch_ocl
