// The provider of kernels for NVIDIA's matrix units by mma.sync (compute capability 7.5 and later).
#pragma once

#include "call/providers.h"

namespace ocltensor::opencl {

extern const Provider kNvidiaMma;

}  // namespace ocltensor::opencl
