// Sampling images and volumes at the points of a grid.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::sampling {

std::span<const OpEntry> sampling_operators();
const AlgorithmFamily& sampling_algorithms();           // of images
const AlgorithmFamily& sampling_backward_algorithms();  // of images' gradients

}  // namespace ocltensor::opencl::sampling
