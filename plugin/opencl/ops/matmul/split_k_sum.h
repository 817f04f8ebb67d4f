// Products whose sums over k are cut into pieces: partial sums are kept in the accumulator's type
// and added in a fixed order.
#pragma once

#include "guard.h"

namespace ocltensor::opencl::matmul {

// Bytes of a partial sum (the types of accumulator.h).
inline int64_t sum_bytes(DType type) { return size_of(type) == 8 ? 8 : 4; }

// A batch of m x n results c, of a product or of a convolution.
struct Results {
  Types types;
  int64_t batch, m, n;
  Matrix c;
  Epilogue end{};
};
inline Results results_of(const Problem& p) { return {p.types, p.batch, p.m, p.n, p.c, p.end}; }

// Adds the pieces' sums and ends them. `sums` holds `pieces` times the batch's m x n matrices,
// piece by piece. With a guard nothing is written if its word has its value.
void sum_pieces(const OpCall& call, const Results& results, int64_t pieces, tb_address sums,
                const Guard& guard = {});

}  // namespace ocltensor::opencl::matmul
