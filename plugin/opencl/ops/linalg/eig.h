// The problem that algorithms of the family `eig` solve, and what they share.
#pragma once

#include "call/algorithms.h"
#include "eig_params.h"
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

// The Schur form A = Q T Q^H of matrices in Hessenberg form, in place.
struct SchurProblem {
  const Numbers& a;        // [count, n, n]
  const Numbers& q;        // [count, n, n], the transpose of Q; not read without vectors
  const Numbers& values;   // [count, n], complex: the diagonal's eigenvalues
  TensorView scaled;       // the same, scaled as the matrix was before balancing, or NaN
  const Numbers& numbers;  // [count, 2]: what a matrix was divided by, NaN where that is not finite
  EigParams params;
};

// ---- eig.cpp
void run_eig(const OpCall& call, const EigProblem& problem,
             void (*find_schur_form)(const OpCall&, const SchurProblem&));
// One work-group or work-item for each matrix.
void run_schur(const OpCall& call, const SchurProblem& problem);

// ---- eig_multishift.cpp
extern constinit const AlgorithmFor<EigProblem> kMultishiftEig;

}  // namespace ocltensor::opencl::linalg
