// Attention on Hopper's matrix units, backward: statistics of every query, then all gradients in
// one pass, or, if bits must be the same in every run or not all are wanted, those of key and value
// in one and that of query in another (kernels/nvidia_hopper/attention/backward.cl).
#include <array>

#include "attention.h"
#include "call/divide_up.h"
#include "call/proofs.h"
#include "call/scalar_bits.h"
#include "kernels/nvidia_hopper/attention.h"
#include "nvidia_hopper/provider.h"
#include "ops/attention/vector_operand.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kTileRows = 128;
constexpr int64_t kItems = 384;
constexpr int64_t kMapBytes = 5 * 128;  // of a work-group: tensor maps, one of them of the mask
constexpr int64_t kMostHeads = 65535;   // work-groups in a launch's second dimension
constexpr size_t kShapes = 4;           // depth 64 or 128, in one pass or two
constexpr int64_t kRowsItems = 256, kQueryItems = 128;
constexpr int64_t kCounterBytes = sizeof(uint32_t);

uint64_t bits(double number) { return slot_bits(static_cast<float>(number)); }
// With dropout, of gradients of scores (GRADIENT in attention_backward_scores.h).
double delta_factor(const attention::FusedProblem& p) {
  return p.block.dropout > 0 ? 2 * (1 - p.block.dropout) : 1;
}
int64_t padded_rows(const attention::FusedProblem& p) {
  return divide_up(p.queries, kTileRows) * kTileRows;
}
FlashTensor strides_of(TensorView t) { return {t.stride(0), t.stride(1), t.stride(2)}; }

// What all launches read. `sums`: of the query's gradient, if one pass makes all.
struct Passes {
  const attention::FusedProblem& p;
  const HopperBackward& v;
  const HopperBackwardOperands& operands;
  int64_t most_groups;
  Scratch rows, counters;
  std::optional<Scratch> sums;

  MemoryRange sums_range() const { return sums ? MemoryRange(*sums) : nullptr; }
};

void make_statistics(const OpCall& call, const Passes& b) {
  const AttentionHopperRowsParams params{strides_of(b.operands.out),
                                         strides_of(b.operands.grad),
                                         b.p.heads,
                                         b.p.queries,
                                         padded_rows(b.p),
                                         b.p.depth,
                                         b.sums.has_value(),
                                         bits(delta_factor(b.p)),
                                         slot_bits(b.v.kind.sum_unit())};
  const int64_t heads = b.p.batch * b.p.heads;
  call.launch(kernels::nvidia_hopper::attention::backward_rows::attention_hopper_rows,
              Defines().type(define::TYPE, b.v.kind.type).set(define::DEPTH, b.v.depth),
              {.rows = b.rows,
               .query_sums = b.sums_range(),
               .counters = b.counters,
               .sums = MemoryRange(b.operands.sums, 0, heads * b.p.queries * 4),
               .out = b.operands.out,
               .grad = b.operands.grad,
               .p = params})
      .run({padded_rows(b.p) * b.v.depth / 8, heads, 1}, {kRowsItems, 1, 1});
}

AttentionHopperBackwardParams pass_params(const Passes& b, HopperPass pass) {
  const attention::FusedProblem& problem = b.p;
  const bool keeps_keys = pass != HopperPass::Query;
  AttentionHopperBackwardParams p{};
  const HopperTensor keys[] = {hopper_layout(b.operands.key), hopper_layout(b.operands.value)};
  const HopperTensor queries[] = {hopper_layout(b.operands.query), hopper_layout(b.operands.grad)};
  for (size_t i = 0; i < 2; ++i) {
    p.kept[i] = keeps_keys ? keys[i] : queries[i];
    p.streamed[i] = keeps_keys ? queries[i] : keys[i];
  }
  p.out[0] = attention::strides_of(problem.outs[keeps_keys ? 1 : 0]);
  p.out[1] = attention::strides_of(problem.outs[2]);
  p.heads = keeps_keys ? problem.key_heads : problem.heads;
  p.groups = problem.groups();
  p.kept_rows = keeps_keys ? problem.keys : problem.queries;
  p.streamed_rows = keeps_keys ? problem.queries : problem.keys;
  p.depth = problem.depth;
  p.padded = padded_rows(problem);
  p.all_heads = problem.batch * p.heads;
  p.row_tiles = divide_up(p.kept_rows, kTileRows);
  p.tiles = p.all_heads * p.row_tiles;
  // Sums are read and written: two passes over four bytes beside two of two.
  const int64_t row_bytes = problem.depth * (pass == HopperPass::All ? 12 : 4);
  p.bundle = hopper_bundle(p.all_heads, p.streamed_rows * row_bytes * (keeps_keys ? p.groups : 1),
                           keeps_keys ? 1 : p.groups);
  p.scale = bits(problem.scale / delta_factor(problem));
  p.score_scale = bits(problem.scale);
  p.wanted[0] = problem.outs[keeps_keys ? 1 : 0].wanted();
  p.wanted[1] = problem.outs[2].wanted();
  p.scores = attention::flash_params(problem).scores;
  if (b.v.kind.mask_tiles) {
    const HopperMask mask =
        hopper_mask(problem, p.scores, keeps_keys ? b.v.form(pass).streamed_rows : kTileRows);
    p.mask = mask.layout;
    p.mask_rows = mask.rows;
  }
  p.mask_in_pairs = is_mask_in_pairs(problem, p.scores);
  return p;
}

void run_pass(const OpCall& call, const Passes& b, HopperPass pass) {
  const bool keeps_keys = pass != HopperPass::Query;
  const tb_address counter = b.counters.address() + (keeps_keys ? 0 : kCounterBytes);
  const AttentionHopperBackwardParams params = pass_params(b, pass);
  const int64_t groups = std::min(params.tiles, b.most_groups);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const auto result = [&b](size_t i) {
    return b.p.outs[i].wanted() ? MemoryRange(b.p.outs[i].tensor()) : nullptr;
  };
  const HopperBackwardOperands& o = b.operands;
  const std::array<MemoryRange, 2> keys = {o.key, o.value}, queries = {o.query, o.grad};
  call.launch(kernels::nvidia_hopper::attention::backward::attention_hopper_backward,
              b.v.defines(pass),
              {.out = keeps_keys ? std::array{result(1), result(2)}
                                 : std::array{result(0), MemoryRange(nullptr)},
               .kept = keeps_keys ? keys : queries,
               .streamed = keeps_keys ? queries : keys,
               .rows = b.rows,
               .mask = memory_of_mask(b.p.block),
               .sums = b.sums_range(),
               .counter = MemoryRange(counter, 0, kCounterBytes),
               .maps = maps,
               .p = params})
      .run({groups * kItems, 1, 1}, {kItems, 1, 1});
}

void finish_query(const OpCall& call, const Passes& b) {
  const attention::OutputPlace& out = b.p.outs[0];
  const AttentionHopperQueryParams params{
      attention::strides_of(out), b.p.heads, b.p.queries,
      padded_rows(b.p),           b.p.depth, bits(b.p.scale / delta_factor(b.p))};
  const int64_t block = b.v.form(HopperPass::All).streamed_rows;
  call.launch(kernels::nvidia_hopper::attention::backward_query::attention_hopper_query,
              Defines()
                  .type(define::TYPE, b.v.kind.type)
                  .set(define::DEPTH, b.v.depth)
                  .set(define::BN, block),
              {.out = MemoryRange(out.tensor()), .sums = *b.sums, .p = params})
      .run({padded_rows(b.p) / block * 2 * kQueryItems, b.p.batch * b.p.heads, 1},
           {kQueryItems, 1, 1});
}

bool is_variant_proven(const OpCall& call, const HopperBackward& v) {
  // leaked: streams may end after static objects
  static auto& proofs = *new Proofs<kShapes * kHopperAttentionKinds>;
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_attention_backward,
                                   wrong_hopper_backward};
  return proofs.hold(
      call,
      ((v.depth == 128 ? 2 : 0) + (v.one_pass ? 1 : 0)) * kHopperAttentionKinds + v.kind.index(),
      kTest, [&] { return v.defines(v.first_pass()); }, &v);
}

Planned<HopperBackward> plan(const OpCall& call, const attention::FusedProblem& p) {
  Planned<HopperAttention> kind = hopper_attention(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  if (p.batch * p.heads > kMostHeads) return "too many heads";
  for (const attention::OutputPlace& out : p.outs)
    if (out.wanted() && !is_hopper_readable(out.tensor(), true))
      return "a result's lines are not aligned";
  const bool all_wanted =
      std::all_of(p.outs.begin(), p.outs.end(), [](const auto& out) { return out.wanted(); });
  const HopperBackward v{kind.plan(), p.depth <= 64 ? 64 : 128,
                         all_wanted && !call.deterministic()};
  if (!is_variant_proven(call, v)) return "the kernel failed its test on this driver";
  return v;
}

// A tensor that the copy engine can read: itself, or a contiguous copy.
class Readable {
 public:
  Readable(const OpCall& call, TensorView tensor) : tensor_(tensor) {
    if (!is_hopper_readable(tensor, false)) copy_.emplace(call, tensor);
  }
  TensorView view() const { return copy_ ? copy_->view() : tensor_; }

 private:
  TensorView tensor_;
  std::optional<Contiguous> copy_;
};

void run(const OpCall& call, const attention::FusedProblem& p, const HopperBackward& v) {
  const auto& args = call.args();
  const Readable grad(call, args.tensor(Arg::grad_out)), out(call, args.tensor(Arg::out));
  const Contiguous sums(call, args.tensor(Arg::logsumexp));
  enqueue_hopper_backward(call, p, v,
                          {grad.view(), args.tensor(Arg::query), args.tensor(Arg::key),
                           args.tensor(Arg::value), out.view(), sums.view().address()},
                          call.caps().compute_units);
}

}  // namespace

Defines HopperBackward::defines(HopperPass pass) const {
  const BackwardForm& row = form(pass);
  Defines d = kind.defines().set(define::PASS, static_cast<int64_t>(pass));
  d.set(define::DEPTH, depth).set(define::BN, row.streamed_rows).set(define::STAGES, row.stages);
  return row.registers.set(d);
}

void enqueue_hopper_backward(const OpCall& call, const attention::FusedProblem& p,
                             const HopperBackward& v, const HopperBackwardOperands& operands,
                             int64_t most_groups) {
  const auto rows = static_cast<uint64_t>(p.batch * p.heads * padded_rows(p));
  Passes passes{p,
                v,
                operands,
                most_groups,
                call.scratch(rows * 2 * sizeof(float)),
                call.scratch(2 * kCounterBytes),
                std::nullopt};
  if (v.one_pass)
    passes.sums.emplace(call.scratch(rows * static_cast<uint64_t>(v.depth) * sizeof(float)));
  make_statistics(call, passes);
  if (v.one_pass) {
    run_pass(call, passes, HopperPass::All);
    return finish_query(call, passes);
  }
  if (p.outs[1].wanted() || p.outs[2].wanted()) run_pass(call, passes, HopperPass::KeyValue);
  if (p.outs[0].wanted()) run_pass(call, passes, HopperPass::Query);
}

void report_likely_backward(const OpCall&, const void* what, const ReportProgram& report) {
  const HopperForward& v = *static_cast<const HopperForward*>(what);
  report(kernel_sources::nvidia_hopper_attention_backward,
         HopperBackward{v.kind, v.form().depth, true}.defines(HopperPass::All));
}

std::string wrong_hopper_backward(const OpCall& call, const void* what) {
  const HopperBackward& v = *static_cast<const HopperBackward*>(what);
  attention::AttentionProof proof(call, v.kind, proof_shape(v.kind, v.depth));
  return attention::wrong_backward(
      proof, [&](const attention::FusedProblem& p, const attention::BackwardProofOperands& o) {
        enqueue_hopper_backward(call, p, v, {o.grad, o.query, o.key, o.value, o.out, o.sums},
                                kProofGroups);
      });
}

constinit const attention::FusedAlgorithm kBackward(
    {.id = "attention_backward.hopper",
     .description = "Hopper's matrix units, scores in registers",
     .provider = &kNvidiaHopper},
    Steps<plan, run>());

}  // namespace ocltensor::opencl::nvidia_hopper
