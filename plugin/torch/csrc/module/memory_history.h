// The record of allocations and frees for Python: see torch_ocl/memory.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

// Adds starting, stopping and the snapshot to the extension module.
void bind_memory_history(pybind11::module_& module);

}  // namespace torch_ocl
