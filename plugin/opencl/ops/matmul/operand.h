// Operands of products as kernels see them that read lines of 16-byte vectors, in place or copied.
#pragma once

#include <optional>

#include "matmul.h"

namespace ocltensor::opencl::matmul {

// A as a matrix of rows, B as one of columns; its lines run along k or across it.
struct Operand {
  DType type;
  tb_address address;
  int64_t batch, line, step;  // strides of the batch, of rows (columns), along k
  int64_t matrices = 1;       // bf16 parts are so many times the batch's stride apart
  bool along_k() const { return step == 1; }
  bool along_lines() const { return line == 1; }
};
inline Operand operand_a(const Problem& p) {
  return {p.types.a, p.a.address, p.a.batch, p.a.row, p.a.col};
}
inline Operand operand_b(const Problem& p) {
  return {p.types.b, p.b.address, p.b.batch, p.b.col, p.b.row};
}

// Whether all lines begin at multiples of 16 bytes, and run along k if the kernel needs that.
bool has_vector_lines(const Problem& p, const Operand& operand, bool along_k_only);

// An operand with such lines: itself, or a copy along k. `lines` are its rows (columns).
class VectorOperand {
 public:
  VectorOperand(const OpCall& call, const Problem& p, const Operand& operand, int64_t lines,
                bool along_k_only);
  const Operand& operand() const { return operand_; }

 private:
  std::optional<Scratch> memory_;  // the copy's, if there is one
  Operand operand_;
};

}  // namespace ocltensor::opencl::matmul
