// The order of a tensor's dimensions in which one of them comes last.
#pragma once

#include "base/value.h"

namespace ocltensor::opencl {

inline Dims order_with_last(int64_t rank, int64_t dim) {
  Dims order;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  return order;
}

}  // namespace ocltensor::opencl
