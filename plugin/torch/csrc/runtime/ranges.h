// Ranges that users mark with record_function, on the plugin's trace.
#pragma once

#include "tensor_backend/plugin.h"
#include "torch_ocl/export.h"

namespace torch_ocl {

// Adds or removes the callback for record_function's ranges; to be called whenever a trace may have
// begun or ended.
TORCH_OCL_API void follow_profiler(const tb_api& api);

}  // namespace torch_ocl
