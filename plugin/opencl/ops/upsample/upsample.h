// Upsampling of images.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> upsample_operators();
std::span<const OpEntry> resample_operators();  // resample.cpp

}  // namespace ocltensor::opencl
