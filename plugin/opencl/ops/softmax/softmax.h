// softmax and log-softmax with their backward operators.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::softmax {

const AlgorithmFamily& softmax_algorithms();

std::span<const OpEntry> softmax_operators();

}  // namespace ocltensor::opencl::softmax
