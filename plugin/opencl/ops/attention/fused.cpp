// Attention without keeping its weights: queries are taken in blocks whose scores fit a bounded
// scratch memory, forward and, from the rows' log-sum-exp, backward (the scheme of Dao and others,
// arXiv 2205.14135, with whole rows of keys). Memory grows with L + S, not with L * S.
#include <cmath>

#include "attention.h"
#include "ops/matmul/matmul.h"
#include "scores.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kScratchBytes = int64_t{64} << 20;  // for one block of scores

// The problem in the type of the computation. Query heads come in `groups` per key head.
struct Problem {
  DType type;
  int64_t batch, heads, key_heads, queries, keys, depth, width;
  double scale;
  ScoreBlock block;  // what all blocks share
  int64_t groups() const { return heads / key_heads; }
  int64_t rows_at_once() const {
    const int64_t row = std::max<int64_t>(1, batch * heads * keys * size_of(type));
    const int64_t rows = std::min(queries, std::max<int64_t>(1, kScratchBytes / row));
    return rows > 64 && rows < queries ? rows / 64 * 64 : rows;
  }
  // Keys that queries before `end` see.
  int64_t seen(int64_t end) const { return block.causal ? std::min(keys, end) : keys; }
};

// `at`: the position of query among the arguments; bias, dropout_p and is_causal have places of
// their own.
Problem problem_of(const OpCall& call, size_t at, size_t dropout, size_t scale) {
  const auto& args = call.args();
  const TensorView q = args.tensor(at);
  const TensorView k = args.tensor(at + 1);
  Problem p{};
  p.type = compute_type(q.dtype());
  p.batch = q.size(0);
  p.heads = q.size(1);
  p.key_heads = k.size(1);
  p.queries = q.size(2);
  p.keys = k.size(2);
  p.depth = q.size(3);
  p.width = args.tensor(at + 2).size(3);
  p.scale = args.optional_real(scale).value_or(1 / std::sqrt(static_cast<double>(p.depth)));
  p.block.type = p.type;
  p.block.batch = {p.batch, p.heads};
  p.block.all_queries = p.queries;
  p.block.all_keys = p.keys;
  p.block.mask = args.optional_tensor(at + 3);
  p.block.dropout = args.real(dropout);
  p.block.causal = args.boolean(dropout + 1);
  p.block.seed = static_cast<uint64_t>(args.integer(scale + 1));
  p.block.offset = static_cast<uint64_t>(args.integer(scale + 2));
  return p;
}

// Products over one block of queries: scores are [batch][heads][rows][seen], tensors of queries
// [batch][heads][queries][c], tensors of keys [batch][key_heads][keys][c].
class Block {
 public:
  Block(const OpCall& call, const Problem& problem, int64_t first)
      : call_(call),
        p_(problem),
        first_(first),
        rows_(std::min(problem.rows_at_once(), problem.queries - first)),
        seen_(problem.seen(first + rows_)) {}
  int64_t end() const { return first_ + rows_; }

  ScoreBlock scores(tb_address address) const {
    ScoreBlock block = p_.block;
    block.address = address;
    block.queries = rows_;
    block.keys = seen_;
    block.first = first_;
    return block;
  }

  // scores = alpha * of_queries of_keys^T
  void multiply_to_scores(tb_address of_queries, tb_address of_keys, int64_t c, tb_address scores,
                          double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(rows_, seen_, c, queries(of_queries, c, g), transposed(keys(of_keys, c)),
          block(scores, g), alpha, false);
  }
  // of_queries = alpha * scores of_keys
  void multiply_by_keys(tb_address scores, tb_address of_keys, int64_t c, tb_address of_queries,
                        double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(rows_, c, seen_, block(scores, g), keys(of_keys, c), queries(of_queries, c, g), alpha,
          false);
  }
  // of_keys += alpha * scores^T of_queries
  void add_products(tb_address scores, tb_address of_queries, int64_t c, tb_address of_keys,
                    double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(seen_, c, rows_, transposed(block(scores, g)), queries(of_queries, c, g),
          keys(of_keys, c), alpha, true);
  }

 private:
  tb_address at(tb_address base, int64_t elements) const {
    return base + static_cast<uint64_t>(elements * size_of(p_.type));
  }
  Matrix queries(tb_address base, int64_t c, int64_t group) const {
    return {at(base, (group * p_.queries + first_) * c), p_.groups() * p_.queries * c, c, 1};
  }
  Matrix keys(tb_address base, int64_t c) const { return {base, p_.keys * c, c, 1}; }
  Matrix block(tb_address base, int64_t group) const {
    return {at(base, group * rows_ * seen_), p_.groups() * rows_ * seen_, seen_, 1};
  }
  static Matrix transposed(Matrix m) {
    std::swap(m.row, m.col);
    return m;
  }
  void run(int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, const Matrix& c,
           double alpha, bool add) const {
    MatmulProblem problem{p_.type, p_.batch * p_.key_heads, m, n, k, a, b, c, {}, alpha, 0};
    if (add) {
      problem.self = c;
      problem.beta = 1;
    }
    run_matmul(call_, problem);
  }

  const OpCall& call_;
  const Problem& p_;
  int64_t first_, rows_, seen_;
};

Scratch block_memory(const OpCall& call, const Problem& p) {
  return call.scratch(
      static_cast<uint64_t>(p.batch * p.heads * p.rows_at_once() * p.keys * size_of(p.type)));
}

Dims key_batch(const Problem& p) { return {p.batch, p.key_heads}; }

void check_shapes(const OpCall& call, const std::vector<TensorSpec>& specs) {
  for (size_t i = 0; i < specs.size(); ++i)
    check(call.out(i).dtype() == specs[i].dtype &&
              (call.out(i).numel() == 0 || Dims(call.out(i).sizes()) == specs[i].sizes),
          "{}: output {} must be {} of shape {}, or empty if it is not wanted", call.name(), i,
          name(specs[i].dtype), to_string(specs[i].sizes));
}

}  // namespace

void fused_attention(OpCall& call) {
  check_shapes(call, call.op().infer(call.args()));
  const Problem p = problem_of(call, 0, 4, 6);
  call.accept();
  const auto& args = call.args();
  if (p.batch * p.heads * p.queries == 0) return;
  if (p.keys == 0) {
    fill_tensor(call, call.out(0), 0);
    return fill_tensor(call, call.out(1), -INFINITY);
  }
  const Operand q(call, args.tensor(0), p.block.batch, p.type);
  const Operand k(call, args.tensor(1), key_batch(p), p.type);
  const Operand v(call, args.tensor(2), key_batch(p), p.type);
  Result out(call, call.out(0), {p.batch, p.heads, p.queries, p.width}, p.type);
  ContiguousOutput sums(call, call.out(1));
  const Scratch scores = block_memory(call, p);
  for (int64_t first = 0; first < p.queries;) {
    const Block block(call, p, first);
    block.multiply_to_scores(q.address(), k.address(), p.depth, scores.address(), p.scale);
    softmax_scores(call, block.scores(scores.address()), call.wants(1) ? sums.view().address() : 0);
    if (p.width > 0)
      block.multiply_by_keys(scores.address(), v.address(), p.width, out.view().address(), 1);
    first = block.end();
  }
  out.finish();
  sums.finish();
}

void fused_attention_backward(OpCall& call) {
  const auto specs = call.op().infer(call.args());
  check_shapes(call, specs);
  const Problem p = problem_of(call, 1, 7, 9);
  call.accept();
  const auto& args = call.args();
  if (p.batch * p.heads * p.queries * p.keys == 0) {
    for (size_t i = 0; i < specs.size(); ++i)
      if (call.wants(i)) fill_tensor(call, call.out(i), 0);
    return;
  }
  const Operand grad(call, args.tensor(0), p.block.batch, p.type);
  const Operand q(call, args.tensor(1), p.block.batch, p.type);
  const Operand k(call, args.tensor(2), key_batch(p), p.type);
  const Operand v(call, args.tensor(3), key_batch(p), p.type);
  const Operand out(call, args.tensor(5), p.block.batch, p.type);
  const Contiguous sums(call, args.tensor(6));
  const int64_t rows = p.batch * p.heads * p.queries;
  const Scratch deltas = call.scratch(static_cast<uint64_t>(rows * size_of(p.type)));
  row_products(call, p.type, deltas.address(), grad.address(), out.address(), rows, p.width);
  Result grad_q(call, call.out(0), specs[0].sizes, p.type);
  Result grad_k(call, call.out(1), specs[1].sizes, p.type);
  Result grad_v(call, call.out(2), specs[2].sizes, p.type);
  fill_tensor(call, grad_k.view(), 0);
  fill_tensor(call, grad_v.view(), 0);
  const Scratch scores = block_memory(call, p);
  const Scratch gradients = block_memory(call, p);
  for (int64_t first = 0; first < p.queries;) {
    const Block block(call, p, first);
    block.multiply_to_scores(q.address(), k.address(), p.depth, scores.address(), p.scale);
    block.multiply_to_scores(grad.address(), v.address(), p.width, gradients.address(), 1);
    differentiate_scores(call, block.scores(scores.address()), gradients.address(),
                         sums.view().address(), deltas.address());
    if (call.wants(2))
      block.add_products(scores.address(), grad.address(), p.width, grad_v.view().address(), 1);
    if (call.wants(0))
      block.multiply_by_keys(gradients.address(), k.address(), p.depth, grad_q.view().address(),
                             p.scale);
    if (call.wants(1))
      block.add_products(gradients.address(), q.address(), p.depth, grad_k.view().address(),
                         p.scale);
    first = block.end();
  }
  grad_q.finish();
  grad_k.finish();
  grad_v.finish();
}

}  // namespace ocltensor::opencl
