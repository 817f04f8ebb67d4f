// The backend of torch.distributed for Python: see torch_ocl/distributed.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_ocl {

// Adds the functions that make a backend and end all groups to the extension module.
void bind_distributed(pybind11::module_& module);

}  // namespace torch_ocl
