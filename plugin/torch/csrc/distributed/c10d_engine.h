// The engine that any c10d backend for tensors of the CPU is: Gloo, which every torch has.
#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "engine.h"
#include "torch_ocl/export.h"

namespace torch_ocl::distributed {

TORCH_OCL_API std::shared_ptr<Engine> make_c10d_engine(c10::intrusive_ptr<c10d::Backend> backend);

}  // namespace torch_ocl::distributed
