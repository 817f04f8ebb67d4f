// The problem that algorithms of the family `eigh` solve.
#pragma once

#include "linalg.h"

namespace ocltensor::opencl::linalg {

// The eigenvalues, ascending, and eigenvectors (columns) of symmetric or Hermitian matrices [...,
// n, n], of which one triangle is read; not empty. Where an algorithm fails, a matrix's eigenvalues
// are NaN.
struct EighProblem {
  TensorView a;
  TensorView values;   // [..., n], row-major
  TensorView vectors;  // [..., n, n], any strides
  bool upper, wants_vectors;
};

}  // namespace ocltensor::opencl::linalg
