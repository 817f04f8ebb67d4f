// Products whose sums over k are made in pieces: the pieces are kept in memory of the accumulator's
// type and added in a fixed order.
#pragma once

#include "guard.h"

namespace ocltensor::opencl::matmul {

// Bytes of one sum (accumulator.h).
inline int64_t sum_bytes(DType type) {
  return type == DType::Float64 || type == DType::Int64 ? 8 : 4;
}

// c = alpha * (sum of the pieces) + beta * self. `sums`: `pieces` matrices of m x n for each of the
// batch, all of the first piece first. With a guard: unless its word has its value.
void sum_pieces(const OpCall& call, const Problem& problem, int64_t pieces, tb_address sums,
                const Guard& guard = {});

}  // namespace ocltensor::opencl::matmul
