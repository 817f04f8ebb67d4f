// Keys of sorting, the same on all devices.
#pragma once

#include "sort.h"

namespace ocltensor::opencl {

// Defines of kernels/include/sort_key.h.
Defines key_defines(DType type, SortOrder order);

}  // namespace ocltensor::opencl
