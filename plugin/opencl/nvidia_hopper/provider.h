// The provider of kernels for NVIDIA's Hopper generation (compute capability 9.0).
#pragma once

#include "call/providers.h"

namespace ocltensor::opencl {

extern const Provider kNvidiaHopper;

}  // namespace ocltensor::opencl
