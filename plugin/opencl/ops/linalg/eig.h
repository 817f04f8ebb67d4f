// The problem that algorithms of the family `eig` solve.
#pragma once

#include "linalg.h"

namespace ocltensor::opencl::linalg {

// The eigenvalues, complex, and right eigenvectors (columns of length 1) of square matrices
// [..., n, n], real or complex; not empty. Where an algorithm fails, a matrix's eigenvalues are
// NaN.
struct EigProblem {
  TensorView a;
  TensorView values;                  // [..., n], row-major
  std::optional<TensorView> vectors;  // [..., n, n], any strides
};

}  // namespace ocltensor::opencl::linalg
