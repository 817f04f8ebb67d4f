// PyTorch's threads that run backward passes, one for each device.
#pragma once

#include "torch_ocl/export.h"

namespace torch_ocl {

// Waits until every device's thread has released the passes that it ran. To be called without the
// GIL.
TORCH_OCL_API void await_backward_threads();

}  // namespace torch_ocl
