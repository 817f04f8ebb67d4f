// Batch, group and layer normalisation with their backward operators.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::norm {

const AlgorithmFamily& layer_norm_algorithms();  // layer.cpp
const AlgorithmFamily& layer_norm_backward_algorithms();
const AlgorithmFamily& plane_norm_algorithms();  // planes.cpp: batch and group normalisation
const AlgorithmFamily& plane_norm_backward_algorithms();

std::span<const OpEntry> norm_operators();
extern const std::span<const OpEntry> kLayerNormOperators;  // layer.cpp
extern const std::span<const OpEntry> kBatchNormOperators;  // batch.cpp
extern const std::span<const OpEntry> kGroupNormOperators;  // group.cpp

}  // namespace ocltensor::opencl::norm
