// float32 attention on Hopper's matrix units: blocks of scores as in blocks.cpp, multiplied as
// three bfloat16. Operands are split once; the softmax and its derivative write the planes of
// weights themselves. What does not split is left to products in plain float32, which are enqueued,
// too.
#include <array>

#include "blocks.h"
#include "ops/divide_up.h"
#include "ops/division.h"
#include "ops/matmul/matrix_units.h"
#include "ops/matmul/planes.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kVector = 8;  // elements that lines of planes are multiples of

const char* refuse_shape(const OpCall& call, const FusedProblem& p) {
  if (const char* reason = refuse_matrix_units(call)) return reason;
  if (call.args().tensor(p.query).dtype() != DType::Float32) return "not float32";
  if (is_rows(call)) return "the device wants few large work-items";
  if (p.depth % kVector != 0 || p.width % kVector != 0 || p.width == 0)
    return "a head is not 8, 16, .. wide";
  if (std::min(p.keys, p.block.causal ? p.queries : p.keys) < kVector) return "few keys";
  constexpr int64_t kMost = int64_t{1} << 31;
  if (p.batch * p.heads * std::max(p.queries, p.keys) * std::max(p.depth, p.width) > kMost)
    return "the sizes need 64 bits";
  return nullptr;
}

// The products have several shapes: a block may be smaller than the others, or see fewer keys.
const char* refuse_forward(const OpCall& call, const FusedProblem& p) {
  if (const char* reason = refuse_shape(call, p)) return reason;
  const char* reason = nullptr;
  for_each_block(p, block_shape(call, p), [&](const Block& block) {
    forward_block(
        block, p, {},
        [&](const MatmulProblem& product, Part, Part) {
          if (reason == nullptr) reason = refuse_plane_product(call, product);
        },
        [] {});
  });
  return reason;
}
const char* refuse_backward(const OpCall& call, const FusedProblem& p) {
  if (const char* reason = refuse_shape(call, p)) return reason;
  const char* reason = nullptr;
  for_each_block(p, block_shape(call, p), [&](const Block& block) {
    backward_block(
        block, p, {},
        [&](const MatmulProblem& product, Part, Part) {
          if (reason == nullptr) reason = refuse_plane_product(call, product);
        },
        [] {});
  });
  return reason;
}

const char* pass_over(const OpCall& call, const FusedProblem& p) {
  if (call.policy().allow_tf32) return "TF32 is allowed";
  constexpr int64_t kLeastScores = int64_t{1} << 21;  // below, launches are most of the time
  const bool few = p.batch * p.heads * p.queries * p.keys < kLeastScores;
  return few || p.queries < 64 || p.keys < 128 ? "splitting would take longer than it saves"
                                               : nullptr;
}

// Scratch memory of a float tensor's planes. A matrix of that tensor has planes that lie as it
// does, but for longer lines.
class Planes {
 public:
  // `line` elements of a line.
  Planes(const OpCall& call, tb_address floats, int64_t lines, int64_t line)
      : floats_(floats),
        lines_(lines),
        line_(line),
        padded_(divide_up(line, kVector) * kVector),
        memory_(call.scratch(static_cast<uint64_t>(lines * padded_ * 6))) {}

  tb_address address() const { return memory_.address(); }
  PlaneTensor tensor() const { return {floats_, memory_.address(), lines_ * line_}; }
  PlaneMatrix of(const Matrix& m) const {
    const auto longer = [this](int64_t stride) {
      return stride == 1 ? 1 : stride / line_ * padded_;
    };
    const auto at = static_cast<int64_t>(m.address - floats_) / 4;
    const int64_t batch = longer(m.batch);
    return {memory_.address() + static_cast<uint64_t>(longer(at) * 2), batch, longer(m.row),
            longer(m.col), lines_ * padded_ / batch};
  }

 private:
  tb_address floats_;
  int64_t lines_, line_, padded_;
  Scratch memory_;
};

using PlanesOfParts = std::array<const Planes*, kParts>;

class Multiplier {
 public:
  Multiplier(const OpCall& call, const Guard& guard, const PlanesOfParts& planes)
      : call_(call), guard_(guard), planes_(planes) {}
  void operator()(const MatmulProblem& p, Part a, Part b) const {
    run_plane_product(call_, p, of(a).of(p.a), of(b).of(p.b), guard_);
  }

 private:
  const Planes& of(Part part) const { return *planes_[static_cast<size_t>(part)]; }
  const OpCall& call_;
  const Guard& guard_;
  PlanesOfParts planes_;
};

class GuardWord {
 public:
  explicit GuardWord(const OpCall& call)
      : memory_(call.scratch(sizeof(uint32_t))), guard_{memory_.address(), next_guard_value()} {}
  const Guard& guard() const { return guard_; }

 private:
  Scratch memory_;
  Guard guard_;
};

Planes score_planes(const OpCall& call, const ScoreBlock& scores) {
  return {call, scores.address, scores.matrices * scores.queries, scores.keys};
}

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

  const GuardWord word(call);
  const int64_t key_lines = p.batch * p.key_heads * p.keys;
  const Planes of_q(call, q.address(), p.batch * p.heads * p.queries, p.depth);
  const Planes of_k(call, k.address(), key_lines, p.depth);
  const Planes of_v(call, v.address(), key_lines, p.width);
  split_to_planes(call, of_q.tensor(), of_k.tensor(), word.guard());
  split_to_planes(call, of_v.tensor(), {v.address(), of_v.address(), 0}, word.guard());

  const ForwardBlocks at{q.address(), k.address(), v.address(), scores.address(),
                         out.view().address()};
  for_each_block(p, shape, [&](const Block& block) {
    const ScoreBlock part = block.scores(at.scores);
    const Planes of_weights = score_planes(call, part);
    const PlanesOfParts all{&of_q, &of_k, &of_v, nullptr, &of_weights, nullptr};
    forward_block(block, p, at, Multiplier(call, word.guard(), all), [&] {
      softmax_scores(call, part, p.outs[1].wanted() ? sums.view().address() : 0,
                     {of_weights.address(), 0, word.guard()});
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
  const Scratch deltas = call.scratch(static_cast<uint64_t>(rows * 4));
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

  const GuardWord word(call);
  const int64_t key_lines = p.batch * p.key_heads * p.keys;
  const Planes q_planes(call, q.address(), rows, p.depth);
  const Planes k_planes(call, k.address(), key_lines, p.depth);
  const Planes v_planes(call, v.address(), key_lines, p.width);
  const Planes grad_planes(call, grad.address(), rows, p.width);
  split_to_planes(call, q_planes.tensor(), k_planes.tensor(), word.guard());
  split_to_planes(call, v_planes.tensor(), grad_planes.tensor(), word.guard());

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
    const ScoreBlock part = block.scores(at.scores);
    const Planes of_weights = score_planes(call, part);
    const Planes of_gradients = score_planes(call, block.scores(at.gradients));
    const PlanesOfParts all{&q_planes,    &k_planes,   &v_planes,
                            &grad_planes, &of_weights, &of_gradients};
    backward_block(block, p, at, Multiplier(call, word.guard(), all), [&] {
      differentiate_scores(call, part, at.gradients, sums.view().address(), deltas.address(),
                           {of_weights.address(), of_gradients.address(), word.guard()});
    });
  });
  grad_q.finish();
  grad_k.finish();
  grad_v.finish();
}

}  // namespace

const FusedAlgorithm kHopperFloatForward{
    {"attention_forward.hopper_bf16x6", "blocks of scores, float32 as three bfloat16"},
    refuse_forward,
    run_forward,
    pass_over};
const FusedAlgorithm kHopperFloatBackward{
    {"attention_backward.hopper_bf16x6", "blocks of scores, float32 as three bfloat16"},
    refuse_backward,
    run_backward,
    pass_over};

}  // namespace ocltensor::opencl
