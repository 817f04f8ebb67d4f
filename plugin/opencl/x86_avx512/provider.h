// The provider of kernels for x86 processors with AVX-512.
#pragma once

#include "call/providers.h"

namespace ocltensor::opencl {

extern const Provider kX86Avx512;

}  // namespace ocltensor::opencl
