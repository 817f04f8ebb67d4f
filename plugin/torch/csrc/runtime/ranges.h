// The ranges that users mark with record_function, on the plugin's trace.
#pragma once

#include "tensor_backend/plugin.h"

namespace torch_ocl {

// Puts record_function's ranges on the plugin's trace while one is being taken; call it when that
// may have changed.
void follow_profiler(const tb_api& api);

}  // namespace torch_ocl
