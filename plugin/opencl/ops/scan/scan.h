// Cumulative operators.
#pragma once

#include "ops/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> scan_operators();

}  // namespace ocltensor::opencl
