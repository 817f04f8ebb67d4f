// Pooling over the last two dimensions.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> pool_operators();
extern const std::span<const OpEntry> kFractionalOperators;  // fractional.cpp

}  // namespace ocltensor::opencl
