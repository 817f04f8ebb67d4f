// Upsampling of images.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::upsample {

std::span<const OpEntry> upsample_operators();
std::span<const OpEntry> resample_operators();  // resample.cpp

const AlgorithmFamily& upsample_algorithms();
const AlgorithmFamily& resample_algorithms();

}  // namespace ocltensor::opencl::upsample
