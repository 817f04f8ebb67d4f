// Graphs for Python: see torch_ocl/graphs.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

// Adds the class Graph and its functions to the extension module.
void bind_graphs(pybind11::module_& module);

}  // namespace torch_ocl
