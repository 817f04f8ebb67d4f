// Products of sparse matrices.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::sparse {

std::span<const OpEntry> sparse_operators();
const AlgorithmFamily& sparse_algorithms();

}  // namespace ocltensor::opencl::sparse
