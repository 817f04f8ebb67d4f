// Sampling images and volumes at the points of a grid.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> sampling_operators();

}  // namespace ocltensor::opencl
