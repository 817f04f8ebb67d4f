// Attention without keeping its weights, on any device: heads and queries are taken in blocks whose
// scores fit a bounded scratch memory, forward and, from the rows' log-sum-exp, backward (the
// scheme of Dao and others, arXiv 2205.14135, with whole rows of keys). Memory grows with L + S,
// not with L * S, for L queries and S keys.
#include "blocks.h"

#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"

namespace ocltensor::opencl::attention {
namespace {

// Scratch memory of one block of scores. On GPUs it is a share of the device's memory: the larger,
// the fewer launches.
constexpr int64_t kScratchBytes = int64_t{64} << 20;
constexpr int64_t kLeastOfGpu = int64_t{32} << 20, kMostOfGpu = int64_t{512} << 20;
constexpr int64_t kShareOfGpu = 256;
// Queries of a block that make its products efficient on a GPU. Causal blocks are narrower, because
// all scores of a block are computed, those above the diagonal too.
constexpr int64_t kRowsGpu = 4096, kCausalRowsGpu = 512;

// The size of a block: key heads (counted over all batches) and queries.
struct BlockShape {
  int64_t heads, rows;
};

BlockShape block_shape(const OpCall& call, const FusedProblem& p) {
  const bool is_gpu = by_style(call, false, true);
  const int64_t all_heads = p.batch * p.key_heads;
  const int64_t row = p.groups() * p.keys * size_of(p.type);  // of one key head
  const auto share = static_cast<int64_t>(call.caps().global_memory) / kShareOfGpu;
  const int64_t bytes = is_gpu ? std::clamp(share, kLeastOfGpu, kMostOfGpu) : kScratchBytes;
  const int64_t most = std::max<int64_t>(1, bytes / row);
  int64_t heads = all_heads, wanted = p.queries;
  if (is_gpu) {
    wanted = std::min(p.queries, p.block.causal ? kCausalRowsGpu : kRowsGpu);
    heads = std::clamp<int64_t>(most / wanted, 1, all_heads);
    heads = divide_up(all_heads, divide_up(all_heads, heads));
    if (!p.block.causal) wanted = p.queries;
  }
  const int64_t rows = std::min(wanted, std::max<int64_t>(1, most / heads));
  return {heads, rows > 64 && rows < p.queries ? rows / 64 * 64 : rows};
}

// How many keys a block sees that ends before query `end`.
int64_t keys_seen(const FusedProblem& p, int64_t end) {
  return p.block.causal ? std::min(p.keys, end) : p.keys;
}

Scratch block_memory(const OpCall& call, const FusedProblem& p, const BlockShape& shape) {
  return call.scratch(
      static_cast<uint64_t>(shape.heads * p.groups() * shape.rows * p.keys * size_of(p.type)));
}

// One block and its products: scores are [key heads][groups][rows][seen], tensors of queries
// [batch][heads][queries][c], tensors of keys [batch][key_heads][keys][c].
class Block {
 public:
  // The block that begins at `key_head` (counted over all batches) and query `first`.
  Block(const FusedProblem& problem, const BlockShape& shape, int64_t key_head, int64_t first,
        const MatrixAddresses& addresses, Products& products)
      : p_(problem),
        addresses_(addresses),
        products_(products),
        key_head_(key_head),
        heads_(std::min(shape.heads, problem.batch * problem.key_heads - key_head)),
        first_(first),
        rows_(std::min(shape.rows, problem.queries - first)),
        seen_(keys_seen(problem, first + rows_)) {}

  ScoreBlock scores() const {
    ScoreBlock block = p_.block;
    block.address = addresses_[MatrixId::Weights];
    block.first_matrix = key_head_ * p_.groups();
    block.matrices = heads_ * p_.groups();
    block.queries = rows_;
    block.keys = seen_;
    block.first = first_;
    return block;
  }

  // scores = alpha * of_queries of_keys^T
  void multiply_to_scores(MatrixId of_queries, MatrixId of_keys, int64_t c, MatrixId scores,
                          double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(of_queries, of_keys, rows_, seen_, c, queries(addresses_[of_queries], c, g),
          matmul::transposed(keys(addresses_[of_keys], c)), block(scores, g), alpha, false);
  }
  // of_queries = alpha * scores of_keys
  void multiply_by_keys(MatrixId scores, MatrixId of_keys, int64_t c, tb_address of_queries,
                        double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(scores, of_keys, rows_, c, seen_, block(scores, g), keys(addresses_[of_keys], c),
          queries(of_queries, c, g), alpha, false);
  }
  // of_keys += alpha * scores^T of_queries, or = of the keys that a head's first block sees
  void add_products(MatrixId scores, MatrixId of_queries, int64_t c, tb_address of_keys,
                    double alpha) const {
    for (int64_t g = 0; g < p_.groups(); ++g)
      run(scores, of_queries, seen_, c, rows_, matmul::transposed(block(scores, g)),
          queries(addresses_[of_queries], c, g), keys(of_keys, c), alpha, g > 0 || first_ > 0);
  }

 private:
  tb_address at(tb_address base, int64_t elements) const {
    return base + static_cast<uint64_t>(elements * size_of(p_.type));
  }
  matmul::Matrix queries(tb_address base, int64_t c, int64_t group) const {
    const int64_t head = key_head_ * p_.groups() + group;
    return {at(base, (head * p_.queries + first_) * c), p_.groups() * p_.queries * c, c, 1};
  }
  matmul::Matrix keys(tb_address base, int64_t c) const {
    return {at(base, key_head_ * p_.keys * c), p_.keys * c, c, 1};
  }
  matmul::Matrix block(MatrixId scores, int64_t group) const {
    return {at(addresses_[scores], group * rows_ * seen_), p_.groups() * rows_ * seen_, seen_, 1};
  }
  static matmul::Matrix transposed(matmul::Matrix m) {
    std::swap(m.row, m.col);
    return m;
  }
  void run(MatrixId of_a, MatrixId of_b, int64_t m, int64_t n, int64_t k, const matmul::Matrix& a,
           const matmul::Matrix& b, const matmul::Matrix& c, double alpha, bool add) const {
    matmul::Problem problem{p_.type, heads_, m, n, k, a, b, c, {.alpha = alpha}};
    if (add) problem.end.add(c);
    products_.multiply(problem, of_a, of_b);
  }

  const FusedProblem& p_;
  const MatrixAddresses& addresses_;
  Products& products_;
  int64_t key_head_, heads_, first_, rows_, seen_;
};

// Calls what(block) for all blocks; those of a head in the order of their queries.
template <typename What>
void for_each_block(const FusedProblem& p, const BlockShape& shape,
                    const MatrixAddresses& addresses, Products& products, const What& what) {
  for (int64_t head = 0; head < p.batch * p.key_heads; head += shape.heads)
    for (int64_t first = 0; first < p.queries; first += shape.rows)
      what(Block(p, shape, head, first, addresses, products));
}

// `soften` turns the scores into weights.
template <typename Soften>
void forward_block(const Block& block, const FusedProblem& p, tb_address out,
                   const Soften& soften) {
  block.multiply_to_scores(MatrixId::Query, MatrixId::Key, p.depth, MatrixId::Weights, p.scale);
  soften();
  block.multiply_by_keys(MatrixId::Weights, MatrixId::Value, p.width, out, 1);
}

struct GradientAddresses {
  tb_address query, key, value;
};
// `differentiate` turns the scores into weights, and the gradients of weights into gradients of
// scores.
template <typename Differentiate>
void backward_block(const Block& block, const FusedProblem& p, const GradientAddresses& to,
                    const Differentiate& differentiate) {
  block.multiply_to_scores(MatrixId::Query, MatrixId::Key, p.depth, MatrixId::Weights, p.scale);
  block.multiply_to_scores(MatrixId::Grad, MatrixId::Value, p.width, MatrixId::Gradients, 1);
  differentiate();
  if (p.outs[2].wanted())
    block.add_products(MatrixId::Weights, MatrixId::Grad, p.width, to.value, 1);
  if (p.outs[0].wanted())
    block.multiply_by_keys(MatrixId::Gradients, MatrixId::Key, p.depth, to.query, p.scale);
  if (p.outs[1].wanted())
    block.add_products(MatrixId::Gradients, MatrixId::Query, p.depth, to.key, p.scale);
}

}  // namespace

void run_forward_blocks(const OpCall& call, const FusedProblem& p, Products& products) {
  const auto& args = call.args();
  const Operand q(call, args.tensor(Arg::query), p.block.batch, p.type);
  const Operand k(call, args.tensor(Arg::key), p.key_batch(), p.type);
  const Operand v(call, args.tensor(Arg::value), p.key_batch(), p.type);
  const LocalTensor output = p.outs[0].tensor(), logsumexp = p.outs[1].tensor();
  Result out(call, output, {p.batch, p.heads, p.queries, p.width}, p.type);
  ContiguousOutput sums(call, logsumexp);
  const BlockShape shape = block_shape(call, p);
  const Scratch scores = block_memory(call, p, shape);

  MatrixAddresses addresses;
  addresses[MatrixId::Query] = q.address();
  addresses[MatrixId::Key] = k.address();
  addresses[MatrixId::Value] = v.address();
  addresses[MatrixId::Weights] = scores.address();
  products.start(addresses);
  for_each_block(p, shape, addresses, products, [&](const Block& block) {
    const ScoreBlock score_block = block.scores();
    const ScoreBf16Parts bf16_parts = products.begin(score_block);
    forward_block(block, p, out.view().address(), [&] {
      softmax_scores(call, score_block, p.outs[1].wanted() ? sums.view().address() : 0, bf16_parts);
    });
  });
  out.finish();
  sums.finish();
}

void run_backward_blocks(const OpCall& call, const FusedProblem& p, Products& products) {
  const auto& args = call.args();
  const Operand grad(call, args.tensor(Arg::grad_out), p.block.batch, p.type);
  const Operand q(call, args.tensor(Arg::query), p.block.batch, p.type);
  const Operand k(call, args.tensor(Arg::key), p.key_batch(), p.type);
  const Operand v(call, args.tensor(Arg::value), p.key_batch(), p.type);
  const Operand out(call, args.tensor(Arg::out), p.block.batch, p.type);
  const Contiguous sums(call, args.tensor(Arg::logsumexp));
  const int64_t rows = p.batch * p.heads * p.queries;
  const Scratch deltas = call.scratch(static_cast<uint64_t>(rows * size_of(p.type)));
  row_products(call, p.type, deltas.address(), grad.address(), out.address(), rows, p.width);
  const LocalTensor of_q = p.outs[0].tensor(), of_k = p.outs[1].tensor(), of_v = p.outs[2].tensor();
  Result grad_q(call, of_q, {p.batch, p.heads, p.queries, p.depth}, p.type);
  Result grad_k(call, of_k, {p.batch, p.key_heads, p.keys, p.depth}, p.type);
  Result grad_v(call, of_v, {p.batch, p.key_heads, p.keys, p.width}, p.type);
  const BlockShape shape = block_shape(call, p);
  const int64_t seen_first = keys_seen(p, std::min(shape.rows, p.queries));
  if (seen_first < p.keys) {  // those that it does not see are added to before they are written
    copy::fill_tensor(call, grad_k.view(), 0);
    copy::fill_tensor(call, grad_v.view(), 0);
  }
  const Scratch scores = block_memory(call, p, shape);
  const Scratch gradients = block_memory(call, p, shape);

  MatrixAddresses addresses;
  addresses[MatrixId::Query] = q.address();
  addresses[MatrixId::Key] = k.address();
  addresses[MatrixId::Value] = v.address();
  addresses[MatrixId::Grad] = grad.address();
  addresses[MatrixId::Weights] = scores.address();
  addresses[MatrixId::Gradients] = gradients.address();
  const GradientAddresses to{grad_q.view().address(), grad_k.view().address(),
                             grad_v.view().address()};
  products.start(addresses);
  for_each_block(p, shape, addresses, products, [&](const Block& block) {
    const ScoreBlock score_block = block.scores();
    const ScoreBf16Parts bf16_parts = products.begin(score_block);
    backward_block(block, p, to, [&] {
      differentiate_scores(call, score_block, addresses[MatrixId::Gradients], sums.view().address(),
                           deltas.address(), bf16_parts);
    });
  });
  grad_q.finish();
  grad_k.finish();
  grad_v.finish();
}

void list_forward_products(const OpCall& call, const FusedProblem& p, Products& products) {
  const MatrixAddresses nowhere;
  for_each_block(p, block_shape(call, p), nowhere, products,
                 [&](const Block& block) { forward_block(block, p, 0, [] {}); });
}

void list_backward_products(const OpCall& call, const FusedProblem& p, Products& products) {
  const MatrixAddresses nowhere;
  for_each_block(p, block_shape(call, p), nowhere, products,
                 [&](const Block& block) { backward_block(block, p, {}, [] {}); });
}

namespace {

class PlainProducts final : public Products {
 public:
  explicit PlainProducts(const OpCall& call) : call_(call) {}
  void multiply(const matmul::Problem& product, MatrixId /*a*/, MatrixId /*b*/) override {
    matmul::run_matmul(call_, product);
  }

 private:
  const OpCall& call_;
};

void run_forward(const OpCall& call, const FusedProblem& p) {
  PlainProducts products(call);
  run_forward_blocks(call, p, products);
}
void run_backward(const OpCall& call, const FusedProblem& p) {
  PlainProducts products(call);
  run_backward_blocks(call, p, products);
}

}  // namespace

constinit const FusedAlgorithm kBlocksForward({.id = "attention_forward.blocks",
                                               .description = "blocks of scores",
                                               .last_resort = true},
                                              Steps<takes_all<FusedProblem>, run_forward>());
constinit const FusedAlgorithm kBlocksBackward({.id = "attention_backward.blocks",
                                                .description = "blocks of scores",
                                                .last_resort = true},
                                               Steps<takes_all<FusedProblem>, run_backward>());

}  // namespace ocltensor::opencl::attention
