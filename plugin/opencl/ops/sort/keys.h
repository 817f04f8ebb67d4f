// Keys of sorting, the same for all algorithms.
#pragma once

#include "sort.h"

namespace ocltensor::opencl::sort {

// The defines that kernels/include/sort_key.h expects.
Defines key_defines(DType type, Order order);

}  // namespace ocltensor::opencl::sort
