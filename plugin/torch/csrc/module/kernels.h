// Custom kernels for Python: see torch_ocl/kernels.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

// Adds compile_kernels and the class KernelLibrary to the extension module.
void bind_kernels(pybind11::module_& module);

}  // namespace torch_ocl
