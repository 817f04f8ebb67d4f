// Attention on Hopper's matrix units, forward: kernels/nvidia_hopper/attention/forward.cl.
#include <algorithm>
#include <limits>

#include "attention.h"
#include "call/divide_up.h"
#include "call/proofs.h"
#include "call/scalar_bits.h"
#include "kernels/nvidia_hopper/attention.h"
#include "nvidia_hopper/provider.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kMapBytes = 4 * 128;  // of a work-group: tensor maps, one of them of the mask
constexpr int64_t kVector = 8;          // elements in 16 bytes; lines must be multiples of it
constexpr int64_t kMostStride = int64_t{1} << 38;
constexpr int64_t kCacheBytes = int64_t{32} << 20;  // most for the keys and values of a bundle
constexpr int64_t kLeastBundle = 4;

bool is_multiple(int64_t stride) {
  return stride > 0 && stride < kMostStride && stride % kVector == 0;
}

// Whether the copy engine can read the mask: its numbers are of the operands' type, the columns
// neighbours, the lines aligned.
bool has_mask_tiles(const attention::Kind& kind, const attention::FusedProblem& p) {
  if (!kind.adds_numbers() || kind.mask_type() != kind.type) return false;
  const AttentionParams scores = attention::flash_params(p).scores;
  const int64_t steps[] = {scores.mask_row, scores.mask_strides[0], scores.mask_strides[1]};
  return scores.mask_column == 1 && p.block.mask->address() % 16 == 0 &&
         std::all_of(std::begin(steps), std::end(steps),
                     [](int64_t step) { return step == 0 || is_multiple(step); });
}

AttentionHopperParams params_of(const attention::FusedProblem& problem, const HopperForward& v,
                                const HopperForwardOperands& operands) {
  AttentionHopperParams p{};
  p.query = hopper_layout(operands.query);
  p.key = hopper_layout(operands.key);
  p.value = hopper_layout(operands.value);
  const Dims& strides = problem.outs[0].strides;
  p.out = {strides[0], strides[1], strides[2]};
  p.heads = problem.heads;
  p.groups = problem.groups();
  p.queries = problem.queries;
  p.keys = problem.keys;
  p.depth = problem.depth;
  p.all_heads = problem.batch * problem.heads;
  p.row_tiles = divide_up(problem.queries, v.form().tile_rows());
  p.tiles = p.all_heads * p.row_tiles;
  p.bundle = hopper_bundle(p.all_heads, problem.keys * problem.depth * 4, p.groups);
  p.scale = slot_bits(static_cast<float>(problem.scale));
  p.sums = problem.outs[1].wanted();
  p.scores = attention::flash_params(problem).scores;
  if (v.kind.mask_tiles) {
    const HopperMask mask = hopper_mask(problem, p.scores, v.form().tile_rows());
    p.mask = mask.layout;
    p.mask_rows = mask.rows;
  }
  p.mask_in_pairs = is_mask_in_pairs(problem, p.scores);
  return p;
}

bool is_variant_proven(const OpCall& call, const HopperForward& v) {
  // leaked: streams may end after static objects
  static auto& proofs = *new Proofs<kForwardForms.size() * kHopperAttentionKinds>;
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_attention_forward,
                                   wrong_hopper_forward, report_likely_backward};
  return proofs.hold(
      call, v.row * kHopperAttentionKinds + v.kind.index(), kTest, [&] { return v.defines(); }, &v);
}

const char* refuse_shape(const attention::FusedProblem& p) {
  if (p.depth != p.width) return "values are not as wide as keys";
  if (p.depth > 128 || p.depth % kVector != 0) return "a head is not 8, 16, .. or 128 wide";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max(p.queries, p.keys) > kMost - 256 ||
      divide_up(p.queries, 128) > kMost / 2 / (p.batch * p.heads))
    return "the sizes need 64 bits";
  const auto scale = static_cast<float>(p.scale);
  if (!(scale > 0) || scale > std::numeric_limits<float>::max() / 2)
    return "the scale is not positive";  // the largest score is found before scaling
  return nullptr;
}

Planned<HopperForward> plan(const OpCall& call, const attention::FusedProblem& p) {
  Planned<HopperAttention> kind = hopper_attention(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  if (!p.outs[0].wanted()) return "the result is not wanted";
  if (!is_hopper_readable(p.outs[0].tensor(), true)) return "the result's lines are not aligned";
  const HopperForward v{kind.plan(), forward_form(kind.plan(), p.depth, p.queries)};
  if (!is_variant_proven(call, v)) return "the kernel failed its test on this driver";
  return v;
}

void run(const OpCall& call, const attention::FusedProblem& p, const HopperForward& v) {
  const auto& args = call.args();
  enqueue_hopper_forward(call, p, v,
                         {args.tensor(Arg::query), args.tensor(Arg::key), args.tensor(Arg::value)},
                         call.caps().compute_units);
}

}  // namespace

bool is_hopper_readable(TensorView t, bool output) {
  if (t.address() % 16 != 0 || t.stride(3) != 1) return false;
  if (t.size(2) > 1 && !is_multiple(t.stride(2))) return false;
  for (size_t i = 0; i < 2; ++i)
    if (t.size(i) > 1 && !is_multiple(t.stride(i)) && (output || t.stride(i) != 0)) return false;
  return true;
}

HopperTensor hopper_layout(TensorView t) {
  const int64_t row = t.size(2) > 1 ? t.stride(2) : t.size(3);
  HopperTensor h{{row, row, row}, 0, 0};
  if (t.size(1) > 1 && t.stride(1) != 0) {
    h.heads = t.size(1);
    h.stride.head = t.stride(1);
  }
  if (t.size(0) > 1 && t.stride(0) != 0) {
    h.batches = t.size(0);
    h.stride.batch = t.stride(0);
  }
  return h;
}

// Bundles are equal, so that the last one does not end on long tiles.
int64_t hopper_bundle(int64_t heads, int64_t bytes, int64_t sharing) {
  const int64_t most = std::max(kLeastBundle, kCacheBytes / std::max<int64_t>(1, bytes) * sharing);
  return divide_up(heads, divide_up(heads, most));
}

HopperMask hopper_mask(const attention::FusedProblem& p, const AttentionParams& scores,
                       int64_t rows) {
  const bool shared = scores.mask_row == 0;
  const int64_t row = shared ? divide_up(p.keys, kVector) * kVector : scores.mask_row;
  HopperMask m{{{row, row, row}, 0, 0}, shared ? 1 : rows};
  if (scores.mask_strides[0] != 0) {
    m.layout.batches = p.batch;
    m.layout.stride.batch = scores.mask_strides[0];
  }
  if (scores.mask_strides[1] != 0) {
    m.layout.heads = p.heads;
    m.layout.stride.head = scores.mask_strides[1];
  }
  return m;
}

Planned<HopperAttention> hopper_attention(const OpCall& call, const attention::FusedProblem& p) {
  Planned<attention::Kind> kind = attention::kind_of(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  const auto& args = call.args();
  if (const char* reason = refuse_shape(p)) return reason;
  for (const Arg operand : {Arg::query, Arg::key, Arg::value})
    if (!is_hopper_readable(args.tensor(operand), false))
      return "an operand's lines are not aligned";
  return HopperAttention{kind.plan(), has_mask_tiles(kind.plan(), p)};
}

bool is_mask_in_pairs(const attention::FusedProblem& p, const AttentionParams& scores) {
  if (!p.block.mask) return false;
  const int64_t pair = 2 * size_of(p.block.mask->dtype());
  const int64_t steps = p.keys | scores.mask_row | scores.mask_strides[0] | scores.mask_strides[1];
  return scores.mask_column == 1 && steps % 2 == 0 &&
         p.block.mask->address() % static_cast<tb_address>(pair) == 0;
}

Defines HopperForward::defines() const {
  Defines d = kind.defines().set(define::DEPTH, form().depth);
  return form().registers.set(d.set(define::WARPGROUPS, form().warpgroups));
}

void enqueue_hopper_forward(const OpCall& call, const attention::FusedProblem& p,
                            const HopperForward& v, const HopperForwardOperands& operands,
                            int64_t most_groups) {
  const AttentionHopperParams params = params_of(p, v, operands);
  const LocalTensor logsumexp = p.outs[1].tensor();
  ContiguousOutput sums(call, logsumexp);
  const int64_t groups = std::min(params.tiles, most_groups);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const int64_t items = v.form().items();
  // Causal tiles of several bundles are not as long as one another in turn. Others save the fill.
  std::optional<Scratch> counter;
  if (v.kind.causal && params.bundle < params.all_heads) {
    counter.emplace(call.scratch(sizeof(uint32_t)));
    counter->clear();
  }
  call.launch(kernels::nvidia_hopper::attention::forward::attention_hopper, v.defines(),
              {.out = p.outs[0].tensor(),
               .sums = p.outs[1].wanted() ? MemoryRange(sums.view()) : nullptr,
               .query = operands.query,
               .key = operands.key,
               .value = operands.value,
               .mask = memory_of_mask(p.block),
               .counter = counter ? MemoryRange(*counter) : nullptr,
               .maps = maps,
               .p = params})
      .run({groups * items, 1, 1}, {items, 1, 1});
  sums.finish();
}

std::string wrong_hopper_forward(const OpCall& call, const void* what) {
  const HopperForward& v = *static_cast<const HopperForward*>(what);
  attention::AttentionProof proof(call, v.kind, proof_shape(v.kind, v.form().depth));
  return attention::wrong_forward(
      proof, [&](const attention::FusedProblem& p, const attention::ProofOperands& o) {
        enqueue_hopper_forward(call, p, v, {o.query, o.key, o.value}, kProofGroups);
      });
}

constinit const attention::FusedAlgorithm kForward(
    {.id = "attention_forward.hopper",
     .description = "Hopper's matrix units, scores in registers",
     .provider = &kNvidiaHopper},
    Steps<plan, run>(), attention::pass_over_few_queries);

}  // namespace ocltensor::opencl::nvidia_hopper
