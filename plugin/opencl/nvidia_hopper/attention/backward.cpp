// Attention on Hopper's matrix units, backward: statistics of every query, then one pass for the
// gradients of key and value and one for that of query
// (kernels/nvidia_hopper/attention/backward.cl).
#include <array>
#include <cstring>

#include "attention.h"
#include "call/divide_up.h"
#include "call/proofs.h"
#include "kernels/nvidia_hopper/attention.h"
#include "nvidia_hopper/provider.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kTileRows = 128;
constexpr int64_t kItems = 384;
constexpr int64_t kMapBytes = 4 * 128;  // of a work-group: four tensor maps
constexpr int64_t kMostHeads = 65535;   // work-groups in a launch's second dimension
constexpr size_t kShapes = 2;           // depth 64 or 128

uint64_t bits(double number) {
  const auto single = static_cast<float>(number);
  uint32_t word = 0;
  std::memcpy(&word, &single, sizeof word);
  return word;
}
int64_t padded_rows(const attention::FusedProblem& p) {
  return divide_up(p.queries, kTileRows) * kTileRows;
}
FlashTensor strides_of(TensorView t) { return {t.stride(0), t.stride(1), t.stride(2)}; }
FlashTensor strides_of(const attention::OutputPlace& out) {
  return out.wanted() ? FlashTensor{out.strides[0], out.strides[1], out.strides[2]} : FlashTensor{};
}

// What both passes read.
struct Passes {
  const attention::FusedProblem& p;
  const HopperBackward& v;
  const HopperBackwardOperands& operands;
  const Scratch& rows;
  int64_t most_groups;
};

void make_statistics(const OpCall& call, const Passes& b) {
  const AttentionHopperRowsParams params{strides_of(b.operands.out),
                                         strides_of(b.operands.grad),
                                         b.p.heads,
                                         b.p.queries,
                                         padded_rows(b.p),
                                         b.p.depth};
  const int64_t heads = b.p.batch * b.p.heads;
  call.launch(kernels::nvidia_hopper::attention::backward_rows::attention_hopper_rows,
              Defines().type(define::TYPE, b.v.kind.type),
              {.rows = b.rows,
               .sums = MemoryRange(b.operands.sums, 0, heads * b.p.queries * 4),
               .out = b.operands.out,
               .grad = b.operands.grad,
               .p = params})
      .run({padded_rows(b.p) / 4 * 128, heads, 1}, {128, 1, 1});
}

AttentionHopperBackwardParams pass_params(const Passes& b, int64_t pass) {
  const attention::FusedProblem& problem = b.p;
  AttentionHopperBackwardParams p{};
  const HopperTensor keys[] = {hopper_layout(b.operands.key), hopper_layout(b.operands.value)};
  const HopperTensor queries[] = {hopper_layout(b.operands.query), hopper_layout(b.operands.grad)};
  for (size_t i = 0; i < 2; ++i) {
    p.kept[i] = pass == 0 ? keys[i] : queries[i];
    p.streamed[i] = pass == 0 ? queries[i] : keys[i];
  }
  p.out[0] = strides_of(problem.outs[pass == 0 ? 1 : 0]);
  p.out[1] = strides_of(problem.outs[2]);
  p.heads = pass == 0 ? problem.key_heads : problem.heads;
  p.groups = problem.groups();
  p.kept_rows = pass == 0 ? problem.keys : problem.queries;
  p.streamed_rows = pass == 0 ? problem.queries : problem.keys;
  p.depth = problem.depth;
  p.padded = padded_rows(problem);
  p.all_heads = problem.batch * p.heads;
  p.row_tiles = divide_up(p.kept_rows, kTileRows);
  p.tiles = p.all_heads * p.row_tiles;
  p.bundle =
      hopper_bundle(p.all_heads, p.streamed_rows * problem.depth * 4 * (pass == 0 ? p.groups : 1),
                    pass == 0 ? 1 : p.groups);
  p.scale = bits(problem.scale);
  p.scale_log2 = bits(problem.scale * kLog2E);
  p.wanted[0] = problem.outs[pass == 0 ? 1 : 0].wanted();
  p.wanted[1] = problem.outs[2].wanted();
  p.scores = attention::flash_params(problem).scores;
  p.mask_in_pairs = is_mask_in_pairs(problem, p.scores);
  return p;
}

void run_pass(const OpCall& call, const Passes& b, int64_t pass) {
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
              {.out = pass == 0 ? std::array{result(1), result(2)}
                                : std::array{result(0), MemoryRange(nullptr)},
               .kept = pass == 0 ? keys : queries,
               .streamed = pass == 0 ? queries : keys,
               .rows = b.rows,
               .mask = memory_of_mask(b.p.block),
               .maps = maps,
               .p = params})
      .run({groups * kItems, 1, 1}, {kItems, 1, 1});
}

bool is_variant_proven(const OpCall& call, const HopperBackward& v) {
  // leaked: streams may end after static objects
  static auto& proofs = *new Proofs<kShapes * attention::kKinds>;
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_attention_backward,
                                   wrong_hopper_backward};
  return proofs.hold(
      call, (v.depth == 128 ? attention::kKinds : 0) + v.kind.index(), kTest,
      [&] { return v.defines(0); }, &v);
}

Planned<HopperBackward> plan(const OpCall& call, const attention::FusedProblem& p) {
  Planned<attention::Kind> kind = attention::kind_of(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  if (const char* reason = refuse_hopper(call, p)) return reason;
  if (p.batch * p.heads > kMostHeads) return "too many heads";
  for (const attention::OutputPlace& out : p.outs)
    if (out.wanted() && !is_hopper_readable(out.tensor(), true))
      return "a result's lines are not aligned";
  const HopperBackward v{kind.plan(), p.depth <= 64 ? 64 : 128};
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

// Two results leave few registers; so do masks and random numbers.
Defines HopperBackward::defines(int64_t pass) const {
  const bool is_plain = kind.mask == attention::MaskKind::None && !kind.dropout;
  const bool small = pass == 0 ? depth == 128 || !is_plain : depth == 128 && !is_plain;
  Defines d = kind.defines();
  d.set(define::PASS, pass).set(define::DEPTH, depth).set(define::BN, small ? 64 : 128);
  return d.set(define::STAGES, depth == 128 && pass == 1 ? 2 : 3);
}

void enqueue_hopper_backward(const OpCall& call, const attention::FusedProblem& p,
                             const HopperBackward& v, const HopperBackwardOperands& operands,
                             int64_t most_groups) {
  const Scratch rows =
      call.scratch(static_cast<uint64_t>(p.batch * p.heads * padded_rows(p)) * 2 * sizeof(float));
  const Passes passes{p, v, operands, rows, most_groups};
  make_statistics(call, passes);
  if (p.outs[1].wanted() || p.outs[2].wanted()) run_pass(call, passes, 0);
  if (p.outs[0].wanted()) run_pass(call, passes, 1);
}

void report_likely_backward(const OpCall&, const void* what, const ReportProgram& report) {
  const HopperForward& v = *static_cast<const HopperForward*>(what);
  for (const int64_t pass : {0, 1})
    report(kernel_sources::nvidia_hopper_attention_backward,
           HopperBackward{v.kind, v.depth}.defines(pass));
}

std::string wrong_hopper_backward(const OpCall& call, const void* what) {
  const HopperBackward& v = *static_cast<const HopperBackward*>(what);
  attention::AttentionProof proof(call, v.kind, proof_shape(v.depth));
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
