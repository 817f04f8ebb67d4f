// Batch, group and layer normalisation with their backward operators.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> norm_operators();
extern const std::span<const OpEntry> kLayerNormOperators;  // layer.cpp
extern const std::span<const OpEntry> kBatchNormOperators;  // batch.cpp
extern const std::span<const OpEntry> kGroupNormOperators;  // group.cpp

}  // namespace ocltensor::opencl
