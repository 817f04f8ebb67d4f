// The plugin's profiler for Python: see torch_ocl/profiler.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

// Adds traces, ranges and statistics to the extension module.
void bind_profiler(pybind11::module_& module);

}  // namespace torch_ocl
