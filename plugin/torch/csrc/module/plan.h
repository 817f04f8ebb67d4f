// Plans of compiled graphs for Python: see torch_ocl/inductor/plan.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

// Adds the class Plan to the extension module.
void bind_plans(pybind11::module_& module);

}  // namespace torch_ocl
