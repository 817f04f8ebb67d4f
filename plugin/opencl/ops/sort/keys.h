// Keys of sorting, the same on all devices.
#pragma once

#include "sort.h"

namespace ocltensor::opencl::sort {

// Defines of kernels/include/sort_key.h.
Defines key_defines(DType type, Order order);

}  // namespace ocltensor::opencl::sort
