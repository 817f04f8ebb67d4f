// Distances between rows.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::distance {

std::span<const OpEntry> distance_operators();
const AlgorithmFamily& distance_algorithms();

}  // namespace ocltensor::opencl::distance
