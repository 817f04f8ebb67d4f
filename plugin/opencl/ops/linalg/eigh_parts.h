// The algorithms of the family `eigh` for GPUs, and what they share.
#pragma once

#include <memory>

#include "call/algorithms.h"
#include "eigh.h"

namespace ocltensor::opencl::linalg {

// ---- eigh.cpp
// a = both triangles of the matrices, packed, divided by scales [count, n] to a largest element
// between 1 and 2; NaN where one is not finite.
void load_symmetric(const OpCall& call, const EighProblem& problem, const Stack& a,
                    const Numbers& scales);

// ---- eigh_small.cpp
extern const AlgorithmFor<EighProblem> kSmallEigh;
// Whether matrices of n rows fit in local memory.
bool is_small_problem(const OpCall& call, DType type, int64_t n);
// Eigenvalues [count, n] of such matrices, ascending, and eigenvectors, if they are wanted.
void solve_small(const OpCall& call, const Stack& a, bool upper, MemoryRange values,
                 const Stack& vectors, bool wants_vectors);

// ---- eigh_tridiagonal.cpp
// Real tridiagonal matrices, and the factors of the reflectors that made them.
struct Tridiagonal {
  Tridiagonal(const OpCall& call, DType type, int64_t count, int64_t n)
      : diagonal(call, real_type(type), {count, n}),
        beside(call, real_type(type), {count, n}),
        tau(call, type, {count, std::max<int64_t>(n - 1, 1)}) {}
  Numbers diagonal, beside;  // [count, n]; of the latter the last element is unused
  Numbers tau;               // [count, n - 1]
};
// a becomes Q T Q^H, with the reflectors below the diagonal's neighbours.
void reduce_to_tridiagonal(const OpCall& call, const Stack& a, const Tridiagonal& out);

// ---- eigh_divide.cpp
// The rows of the leaves that rotations solve; 0: local memory is too small.
int64_t most_leaf_rows(const OpCall& call, DType type);
// Eigenvalues and eigenvectors of tridiagonal matrices, for which some rows are added at the end,
// whose eigenvalues are the largest.
struct Conquest {
  Conquest(const OpCall& call, const Tridiagonal& t);
  int64_t total;                     // rows
  std::unique_ptr<Numbers> values;   // [count, total], ascending
  std::unique_ptr<Numbers> vectors;  // [count, total, total]
};

// ---- eigh_blocked.cpp
extern const AlgorithmFor<EighProblem> kDivideEigh;

}  // namespace ocltensor::opencl::linalg
