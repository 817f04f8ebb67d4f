// Matrix products: the problem, and the ordered list of algorithms that solve it. Other
// families (convolution) state a problem and call run_matmul.
#pragma once

#include <optional>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/op_call.h"
#include "matmul_params.h"

namespace ocltensor::opencl::matmul {

// A batch of matrices in memory; strides in elements, 0 where they repeat.
struct Matrix {
  tb_address address;
  int64_t batch, row, col;
};
inline Matrix transposed(const Matrix& m) { return {m.address, m.batch, m.col, m.row}; }

// c = alpha * a b + beta * self, per batch; all operands have type `dtype`. A `self` may be c
// itself.
struct Problem {
  DType dtype;
  int64_t batch, m, n, k;
  Matrix a, b, c;
  std::optional<Matrix> self;
  Scalar alpha = 1;
  Scalar beta = 0;
};

// Runs one of the algorithms: see call/algorithms.h. To be called after call.accept().
void run_matmul(const OpCall& call, const Problem& problem);
const AlgorithmFamily& matmul_algorithms();

// complex.cpp: a problem of complex64 as a real one.
void run_complex_matmul(const OpCall& call, const Problem& problem);

extern const AlgorithmFor<Problem> kSplitKCpu, kSplitKGpu;  // split_k.cpp: long sums
extern const AlgorithmFor<Problem> kSkinny, kInPlace,
    kPacked;                                         // cpu.cpp: CPU drivers
extern const AlgorithmFor<Problem> kDots, kColumns;  // skinny.cpp: GPUs
extern const AlgorithmFor<Problem> kLargeTiles,
    kSmallTiles;                                              // sgemm.cpp: GPUs
extern const AlgorithmFor<Problem> kGeneralCpu, kGeneralGpu;  // general.cpp: anything

// skinny.cpp: up to so many rows (columns) a product reads its other operand once, for GPUs.
int64_t most_skinny_rows(DType type);
bool skinny_beats_matrix_units(const Problem& p);

// For the algorithms: the kernels' parameters, defines and operands of a problem. A problem without
// a `self` has no memory of it.
MatmulParams matmul_params(const Problem& problem);
Defines matmul_defines(const Problem& problem);
MemoryRange memory_of_a(const Problem& problem);
MemoryRange memory_of_b(const Problem& problem);
MemoryRange memory_of_c(const Problem& problem);
MemoryRange memory_of_self(const Problem& problem);

std::span<const OpEntry> matmul_operators();

}  // namespace ocltensor::opencl::matmul
