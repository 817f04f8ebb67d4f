// Cumulative operators.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> scan_operators();

}  // namespace ocltensor::opencl
