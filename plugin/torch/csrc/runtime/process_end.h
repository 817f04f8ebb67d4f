// What the end of a process waits for, while the interpreter is there still.
#pragma once

#include "torch_ocl/export.h"

namespace torch_ocl {

// Waits until every device's thread of backward passes has released the passes that it ran. To be
// called without the GIL.
TORCH_OCL_API void await_backward_threads();

// Waits for what all devices that have been used have to do; an error is dropped. To be called
// without the GIL.
TORCH_OCL_API void await_devices();

}  // namespace torch_ocl
