// Scaled dot product attention.
#pragma once

#include "ops/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> attention_operators();

}  // namespace ocltensor::opencl
