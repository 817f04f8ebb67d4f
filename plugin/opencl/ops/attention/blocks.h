// Attention by blocks of scores: heads and queries are cut into blocks whose scores fit a bounded
// memory, and the caller says how the products of a block are computed.
#pragma once

#include <array>

#include "fused.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::attention {

// Operands of the products: row-major tensors of the whole problem, except Weights and Gradients,
// which are a block's scores (and their gradients) in scratch memory.
enum class MatrixId : uint8_t { Query, Key, Value, Grad, Weights, Gradients };
inline constexpr size_t kParts = 6;

// The operands' addresses; 0 for operands that a pass does not have.
class MatrixAddresses {
 public:
  tb_address& operator[](MatrixId matrix) { return of_[static_cast<size_t>(matrix)]; }
  tb_address operator[](MatrixId matrix) const { return of_[static_cast<size_t>(matrix)]; }

 private:
  std::array<tb_address, kParts> of_{};
};

// How products are computed. A pass calls start(), and for each block begin(), then multiply() for
// its products in their order, with the softmax or its derivative between them.
class Products {
 public:
  virtual ~Products() = default;
  virtual void start(const MatrixAddresses& /*addresses*/) {}
  // Where the softmax shall write bf16 parts of the block's weights and gradients, if these
  // products need any.
  virtual ScoreBf16Parts begin(const ScoreBlock& /*scores*/) { return {}; }
  virtual void multiply(const matmul::Problem& product, MatrixId a, MatrixId b) = 0;
};

void run_forward_blocks(const OpCall& call, const FusedProblem& p, Products& products);
void run_backward_blocks(const OpCall& call, const FusedProblem& p, Products& products);
// Calls multiply() alone, for each product of a pass, with addresses that begin at 0.
void list_forward_products(const OpCall& call, const FusedProblem& p, Products& products);
void list_backward_products(const OpCall& call, const FusedProblem& p, Products& products);

}  // namespace ocltensor::opencl::attention
