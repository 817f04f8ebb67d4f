// A contiguous tensor seen around one of its dimensions: [outer, n, inner].
#pragma once

#include "base/value.h"
#include "nest_params.h"

namespace ocltensor::opencl {

using Nest = NestParams;
inline Nest nest_of(TensorView tensor, int64_t dim) {
  Nest nest{1, 1, 1};
  const int64_t at = wrap_dim(dim, tensor.ndim());
  for (int64_t d = 0; d < tensor.ndim(); ++d)
    (d < at ? nest.outer : d == at ? nest.n : nest.inner) *= tensor.size(d);
  return nest;
}

}  // namespace ocltensor::opencl
