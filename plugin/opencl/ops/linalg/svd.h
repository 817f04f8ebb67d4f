// The problem that algorithms of the family `svd` solve.
#pragma once

#include "linalg.h"

namespace ocltensor::opencl::linalg {

// The singular values, descending, and singular vectors of matrices [..., m, n]; not empty. With k
// = min(m, n), `u` is [..., m, k or m] and `vh` [..., k or n, n]: both are wanted, or neither.
// Where an algorithm fails, a matrix's singular values are NaN.
struct SvdProblem {
  TensorView a;
  TensorView values;                // [..., k], row-major
  std::optional<TensorView> u, vh;  // any strides
};

}  // namespace ocltensor::opencl::linalg
