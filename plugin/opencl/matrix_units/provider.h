// The providers of kernels for AMD's and Intel's matrix units, and AMD's dot products.
#pragma once

#include "call/providers.h"

namespace ocltensor::opencl {

extern const Provider kAmdDot, kAmdMfma, kAmdWmma, kIntelXmx;

}  // namespace ocltensor::opencl
