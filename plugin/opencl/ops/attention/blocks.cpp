// Attention without keeping its weights on any device: heads and queries are taken in blocks whose
// scores fit a bounded scratch memory, forward and, from the rows' log-sum-exp, backward (the
// scheme of Dao and others, arXiv 2205.14135, with whole rows of keys). Memory grows with L + S,
// not with L * S.
#include "blocks.h"

#include <algorithm>

#include "ops/divide_up.h"

namespace ocltensor::opencl {
namespace {

// Of one block of scores. On GPUs a share of the device's memory: the more, the fewer launches.
constexpr int64_t kScratchBytes = int64_t{64} << 20;
constexpr int64_t kLeastOfGpu = int64_t{32} << 20, kMostOfGpu = int64_t{512} << 20;
constexpr int64_t kShareOfGpu = 256;
// Queries that make a product of a GPU efficient. Causal blocks are narrower: what lies above the
// diagonal inside one is computed, too.
constexpr int64_t kRowsGpu = 4096, kCausalRowsGpu = 512;

}  // namespace

Scratch block_memory(const OpCall& call, const FusedProblem& p, const BlockShape& shape) {
  return call.scratch(
      static_cast<uint64_t>(shape.heads * p.groups() * shape.rows * p.keys * size_of(p.type)));
}

BlockShape block_shape(const OpCall& call, const FusedProblem& p) {
  const bool is_gpu = call.caps().style == KernelStyle::Elements;
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

namespace {

const char* never(const OpCall&, const FusedProblem&) { return nullptr; }

void run_forward(const OpCall& call, const FusedProblem& p) {
  const auto& args = call.args();
  const Operand q(call, args.tensor(0), p.block.batch, p.type);
  const Operand k(call, args.tensor(1), p.key_batch(), p.type);
  const Operand v(call, args.tensor(2), p.key_batch(), p.type);
  const LocalTensor output = p.outs[0].tensor(), logsumexp = p.outs[1].tensor();
  Result out(call, output, {p.batch, p.heads, p.queries, p.width}, p.type);
  ContiguousOutput sums(call, logsumexp);
  const BlockShape shape = block_shape(call, p);
  const Scratch scores = block_memory(call, p, shape);
  const ForwardBlocks at{q.address(), k.address(), v.address(), scores.address(),
                         out.view().address()};
  for_each_block(p, shape, [&](const Block& block) {
    forward_block(
        block, p, at, [&](const MatmulProblem& product, Part, Part) { run_matmul(call, product); },
        [&] {
          softmax_scores(call, block.scores(at.scores),
                         p.outs[1].wanted() ? sums.view().address() : 0);
        });
  });
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
  const BlockShape shape = block_shape(call, p);
  const Scratch scores = block_memory(call, p, shape);
  const Scratch gradients = block_memory(call, p, shape);
  const BackwardBlocks at{q.address(),
                          k.address(),
                          v.address(),
                          grad.address(),
                          scores.address(),
                          gradients.address(),
                          grad_q.view().address(),
                          grad_k.view().address(),
                          grad_v.view().address()};
  for_each_block(p, shape, [&](const Block& block) {
    backward_block(
        block, p, at, [&](const MatmulProblem& product, Part, Part) { run_matmul(call, product); },
        [&] {
          differentiate_scores(call, block.scores(at.scores), at.gradients, sums.view().address(),
                               deltas.address());
        });
  });
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
