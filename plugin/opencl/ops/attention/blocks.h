// Blocks of scores: heads and queries in parts whose scores fit a bounded memory, and the products
// that a part takes.
#pragma once

#include <algorithm>

#include "fused.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl {

// Which queries of which key heads (of all batches) a block has.
struct BlockShape {
  int64_t heads, rows;
};

BlockShape block_shape(const OpCall& call, const FusedProblem& p);
Scratch block_memory(const OpCall& call, const FusedProblem& p, const BlockShape& shape);

// What an operand of a product is (or a part of it).
enum class Part : uint8_t { Query, Key, Value, Grad, Weights, Gradients };
inline constexpr size_t kParts = 6;
struct BlockOperand {
  tb_address address;
  Part part;
};

// The products of one block, for multiply(problem, part of a, part of b): scores are [key
// heads][groups][rows][seen], tensors of queries [batch][heads][queries][c], tensors of keys
// [batch][key_heads][keys][c].
class Block {
 public:
  // The block from `key_head` (of all batches) and query `first` on.
  Block(const FusedProblem& problem, const BlockShape& shape, int64_t key_head, int64_t first)
      : p_(problem),
        key_head_(key_head),
        heads_(std::min(shape.heads, problem.batch * problem.key_heads - key_head)),
        first_(first),
        rows_(std::min(shape.rows, problem.queries - first)),
        seen_(p_.block.causal ? std::min(p_.keys, first + rows_) : p_.keys) {}

  ScoreBlock scores(tb_address address) const {
    ScoreBlock block = p_.block;
    block.address = address;
    block.first_matrix = key_head_ * p_.groups();
    block.matrices = heads_ * p_.groups();
    block.queries = rows_;
    block.keys = seen_;
    block.first = first_;
    return block;
  }

  // scores = alpha * of_queries of_keys^T
  template <typename Multiply>
  void multiply_to_scores(const Multiply& multiply, BlockOperand of_queries, BlockOperand of_keys,
                          int64_t c, tb_address scores, double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(multiply, of_queries.part, of_keys.part, rows_, seen_, c,
          queries(of_queries.address, c, g), transposed(keys(of_keys.address, c)), block(scores, g),
          alpha, false);
  }
  // of_queries = alpha * scores of_keys
  template <typename Multiply>
  void multiply_by_keys(const Multiply& multiply, BlockOperand scores, BlockOperand of_keys,
                        int64_t c, tb_address of_queries, double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(multiply, scores.part, of_keys.part, rows_, c, seen_, block(scores.address, g),
          keys(of_keys.address, c), queries(of_queries, c, g), alpha, false);
  }
  // of_keys += alpha * scores^T of_queries
  template <typename Multiply>
  void add_products(const Multiply& multiply, BlockOperand scores, BlockOperand of_queries,
                    int64_t c, tb_address of_keys, double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(multiply, scores.part, of_queries.part, seen_, c, rows_,
          transposed(block(scores.address, g)), queries(of_queries.address, c, g), keys(of_keys, c),
          alpha, true);
  }

 private:
  tb_address at(tb_address base, int64_t elements) const {
    return base + static_cast<uint64_t>(elements * size_of(p_.type));
  }
  Matrix queries(tb_address base, int64_t c, int64_t group) const {
    const int64_t head = key_head_ * p_.groups() + group;
    return {at(base, (head * p_.queries + first_) * c), p_.groups() * p_.queries * c, c, 1};
  }
  Matrix keys(tb_address base, int64_t c) const {
    return {at(base, key_head_ * p_.keys * c), p_.keys * c, c, 1};
  }
  Matrix block(tb_address base, int64_t group) const {
    return {at(base, group * rows_ * seen_), p_.groups() * rows_ * seen_, seen_, 1};
  }
  static Matrix transposed(Matrix m) {
    std::swap(m.row, m.col);
    return m;
  }
  template <typename Multiply>
  void run(const Multiply& multiply, Part of_a, Part of_b, int64_t m, int64_t n, int64_t k,
           const Matrix& a, const Matrix& b, const Matrix& c, double alpha, bool add) const {
    MatmulProblem problem{p_.type, heads_, m, n, k, a, b, c, {}, alpha, 0};
    if (add) {
      problem.self = c;
      problem.beta = 1;
    }
    multiply(problem, of_a, of_b);
  }

  const FusedProblem& p_;
  int64_t key_head_, heads_, first_, rows_, seen_;
};

// Calls what(block) for all of them; the queries of a head in their order.
template <typename What>
void for_each_block(const FusedProblem& p, const BlockShape& shape, const What& what) {
  for (int64_t head = 0; head < p.batch * p.key_heads; head += shape.heads)
    for (int64_t first = 0; first < p.queries; first += shape.rows)
      what(Block(p, shape, head, first));
}

// Addresses of float tensors: row-major, scores in scratch memory.
struct ForwardBlocks {
  tb_address query, key, value, scores, out;
};
// `soften` makes weights of the scores.
template <typename Multiply, typename Soften>
void forward_block(const Block& block, const FusedProblem& p, const ForwardBlocks& at,
                   const Multiply& multiply, const Soften& soften) {
  block.multiply_to_scores(multiply, {at.query, Part::Query}, {at.key, Part::Key}, p.depth,
                           at.scores, p.scale);
  soften();
  block.multiply_by_keys(multiply, {at.scores, Part::Weights}, {at.value, Part::Value}, p.width,
                         at.out, 1);
}

struct BackwardBlocks {
  tb_address query, key, value, grad, scores, gradients, grad_query, grad_key, grad_value;
};
// `differentiate` makes weights of the scores, and gradients of scores of those of weights.
template <typename Multiply, typename Differentiate>
void backward_block(const Block& block, const FusedProblem& p, const BackwardBlocks& at,
                    const Multiply& multiply, const Differentiate& differentiate) {
  const BlockOperand query{at.query, Part::Query}, key{at.key, Part::Key};
  const BlockOperand value{at.value, Part::Value}, grad{at.grad, Part::Grad};
  const BlockOperand weights{at.scores, Part::Weights}, gradients{at.gradients, Part::Gradients};
  block.multiply_to_scores(multiply, query, key, p.depth, at.scores, p.scale);
  block.multiply_to_scores(multiply, grad, value, p.width, at.gradients, 1);
  differentiate();
  if (p.outs[2].wanted()) block.add_products(multiply, weights, grad, p.width, at.grad_value, 1);
  if (p.outs[0].wanted())
    block.multiply_by_keys(multiply, gradients, key, p.depth, at.grad_query, p.scale);
  if (p.outs[1].wanted())
    block.add_products(multiply, gradients, query, p.depth, at.grad_key, p.scale);
}

}  // namespace ocltensor::opencl
