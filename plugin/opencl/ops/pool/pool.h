// Pooling over the last two dimensions.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::pool {

std::span<const OpEntry> pool_operators();
extern const std::span<const OpEntry> kFractionalOperators;  // fractional.cpp

const AlgorithmFamily& pool_max_algorithms();
const AlgorithmFamily& pool_max_backward_algorithms();
const AlgorithmFamily& pool_average_algorithms();
const AlgorithmFamily& pool_fractional_algorithms();

}  // namespace ocltensor::opencl::pool
