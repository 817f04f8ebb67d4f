// An engine of torch.distributed that is written in Python: torch_ocl/distributed/_mpi.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "distributed/engine.h"

namespace torch_ocl {

// `object` has Engine's functions by their names, which see memory as memoryviews of bytes, types
// and combinations by their enumerators' names, and limits in seconds. They are called with the
// GIL, from threads of the backend: what waits in them has to release it.
std::shared_ptr<distributed::Engine> make_python_engine(pybind11::object object);

}  // namespace torch_ocl
