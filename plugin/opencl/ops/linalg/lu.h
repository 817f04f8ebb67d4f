// The problem that algorithms of the family `lu` solve.
#pragma once

#include <optional>

#include "call/algorithms.h"
#include "linalg.h"

namespace ocltensor::opencl::linalg {

// P A = L U of matrices [..., m, n], not empty: their factors in one matrix, LAPACK's pivots and
// its info (the first pivot that is zero, from 1). Of square matrices, with the factors, the
// solution of A X = B, or X A = B; without B, the inverse.
struct LuProblem {
  TensorView a;
  std::optional<TensorView> lu;  // [..., m, n], any strides; always wanted with b
  TensorView pivots, info;       // [..., min(m, n)] and [...], int32, row-major
  bool pivot = true;
  std::optional<TensorView> b;  // its batch dimensions and those of a broadcast to x's
  std::optional<TensorView> x;  // any strides, not empty
  bool left = true;
};

extern const AlgorithmFor<LuProblem> kPanelsLu;

}  // namespace ocltensor::opencl::linalg
