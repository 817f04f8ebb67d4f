// Attention without keeping its weights on any device: queries are taken in blocks whose scores fit
// a bounded scratch memory, forward and, from the rows' log-sum-exp, backward (the scheme of Dao
// and others, arXiv 2205.14135, with whole rows of keys). Memory grows with L + S, not with L * S.
#include "fused.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kScratchBytes = int64_t{64} << 20;  // for one block of scores

int64_t rows_at_once(const FusedProblem& p) {
  const int64_t row = std::max<int64_t>(1, p.batch * p.heads * p.keys * size_of(p.type));
  const int64_t rows = std::min(p.queries, std::max<int64_t>(1, kScratchBytes / row));
  return rows > 64 && rows < p.queries ? rows / 64 * 64 : rows;
}
// Keys that queries before `end` see.
int64_t seen(const FusedProblem& p, int64_t end) {
  return p.block.causal ? std::min(p.keys, end) : p.keys;
}

// Products over one block of queries: scores are [batch][heads][rows][seen], tensors of queries
// [batch][heads][queries][c], tensors of keys [batch][key_heads][keys][c].
class Block {
 public:
  Block(const OpCall& call, const FusedProblem& problem, int64_t first)
      : call_(call),
        p_(problem),
        first_(first),
        rows_(std::min(rows_at_once(problem), problem.queries - first)),
        seen_(seen(problem, first + rows_)) {}
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
  const FusedProblem& p_;
  int64_t first_, rows_, seen_;
};

Scratch block_memory(const OpCall& call, const FusedProblem& p) {
  return call.scratch(
      static_cast<uint64_t>(p.batch * p.heads * rows_at_once(p) * p.keys * size_of(p.type)));
}

const char* never(const OpCall&, const FusedProblem&) { return nullptr; }

void run_forward(const OpCall& call, const FusedProblem& p) {
  const auto& args = call.args();
  const Operand q(call, args.tensor(0), p.block.batch, p.type);
  const Operand k(call, args.tensor(1), p.key_batch(), p.type);
  const Operand v(call, args.tensor(2), p.key_batch(), p.type);
  const LocalTensor output = p.outs[0].tensor(), logsumexp = p.outs[1].tensor();
  Result out(call, output, {p.batch, p.heads, p.queries, p.width}, p.type);
  ContiguousOutput sums(call, logsumexp);
  const Scratch scores = block_memory(call, p);
  for (int64_t first = 0; first < p.queries;) {
    const Block block(call, p, first);
    block.multiply_to_scores(q.address(), k.address(), p.depth, scores.address(), p.scale);
    softmax_scores(call, block.scores(scores.address()),
                   p.outs[1].wanted() ? sums.view().address() : 0);
    block.multiply_by_keys(scores.address(), v.address(), p.width, out.view().address(), 1);
    first = block.end();
  }
  out.finish();
  sums.finish();
}

void run_backward(const OpCall& call, const FusedProblem& p) {
  const auto& args = call.args();
  const Operand grad(call, args.tensor(0), p.block.batch, p.type);
  const Operand q(call, args.tensor(1), p.block.batch, p.type);
  const Operand k(call, args.tensor(2), p.key_batch(), p.type);
  const Operand v(call, args.tensor(3), p.key_batch(), p.type);
  const Operand out(call, args.tensor(5), p.block.batch, p.type);
  const Contiguous sums(call, args.tensor(6));
  const int64_t rows = p.batch * p.heads * p.queries;
  const Scratch deltas = call.scratch(static_cast<uint64_t>(rows * size_of(p.type)));
  row_products(call, p.type, deltas.address(), grad.address(), out.address(), rows, p.width);
  const LocalTensor of_q = p.outs[0].tensor(), of_k = p.outs[1].tensor(), of_v = p.outs[2].tensor();
  Result grad_q(call, of_q, {p.batch, p.heads, p.queries, p.depth}, p.type);
  Result grad_k(call, of_k, {p.batch, p.key_heads, p.keys, p.depth}, p.type);
  Result grad_v(call, of_v, {p.batch, p.key_heads, p.keys, p.width}, p.type);
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
    if (p.outs[2].wanted())
      block.add_products(scores.address(), grad.address(), p.width, grad_v.view().address(), 1);
    if (p.outs[0].wanted())
      block.multiply_by_keys(gradients.address(), k.address(), p.depth, grad_q.view().address(),
                             p.scale);
    if (p.outs[1].wanted())
      block.add_products(gradients.address(), q.address(), p.depth, grad_k.view().address(),
                         p.scale);
    first = block.end();
  }
  grad_q.finish();
  grad_k.finish();
  grad_v.finish();
}

}  // namespace

const FusedAlgorithm kBlocksForward{
    {"attention_forward.blocks", "blocks of scores", true}, never, run_forward};
const FusedAlgorithm kBlocksBackward{
    {"attention_backward.blocks", "blocks of scores", true}, never, run_backward};

}  // namespace ocltensor::opencl
