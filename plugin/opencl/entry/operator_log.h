// The line of the log for an operator's call: its arguments' types and shapes.
#pragma once

#include <span>
#include <string_view>

#include "runtime/observe/profiler.h"
#include "tensor_backend/plugin.h"

namespace ocltensor::opencl {

// Does nothing unless OCLTENSOR_LOG_PROFILE_INFO asks for operators.
void log_operator(profiler::HostCall& call, std::string_view name, std::span<const tb_value> args,
                  std::span<const tb_tensor* const> outs);

}  // namespace ocltensor::opencl
