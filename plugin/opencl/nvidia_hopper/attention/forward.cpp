// Attention on Hopper's matrix units, forward: kernels/nvidia_hopper/attention/forward.cl.
#include <algorithm>
#include <cstring>
#include <limits>

#include "attention.h"
#include "call/divide_up.h"
#include "call/proofs.h"
#include "kernels/nvidia_hopper/attention.h"
#include "nvidia_hopper/provider.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kMapBytes = 3 * 128;  // of a work-group: three tensor maps
constexpr int64_t kVector = 8;          // elements in 16 bytes; lines must be multiples of it
constexpr int64_t kMostStride = int64_t{1} << 38;
constexpr int64_t kCacheBytes = int64_t{32} << 20;  // most for the keys and values of a bundle
constexpr int64_t kLeastBundle = 4;
constexpr size_t kVariants = 2 * 3 * 2;

// Three warpgroups read keys less often; two take turns at the matrix unit, which is better for few
// rows.
HopperVariant variant_for(const OpCall& call, const attention::FusedProblem& p) {
  HopperVariant v{call.args().tensor(Arg::query).dtype(), p.depth <= 64 ? 64 : 128, 2,
                  p.block.causal};
  if (v.depth == 64 && p.queries > (v.causal ? 2048 : 1024)) v.warpgroups = 3;
  return v;
}
size_t index_of(const HopperVariant& v) {
  const size_t shape = v.depth == 128 ? 2 : v.warpgroups == 3 ? 1 : 0;
  return ((v.type == DType::BFloat16 ? 3 : 0) + shape) * 2 + (v.causal ? 1 : 0);
}

bool is_multiple(int64_t stride) {
  return stride > 0 && stride < kMostStride && stride % kVector == 0;
}

AttentionHopperParams params_of(const HopperForward& f) {
  AttentionHopperParams p{};
  p.query = f.query_layout;
  p.key = f.key_layout;
  p.value = f.value_layout;
  p.out = f.out_layout;
  p.heads = f.heads;
  p.groups = f.heads / f.key_heads;
  p.queries = f.queries;
  p.keys = f.keys;
  p.depth = f.depth;
  p.all_heads = f.batch * f.heads;
  p.row_tiles = divide_up(f.queries, f.variant.tile_rows());
  p.tiles = p.all_heads * p.row_tiles;
  p.bundle = hopper_bundle(p.all_heads, f.keys * f.depth * 4, p.groups);
  const auto scale = static_cast<float>(f.scale * kLog2E);
  std::memcpy(&p.scale, &scale, sizeof scale);
  p.sums = f.sums != 0;
  return p;
}

bool is_variant_proven(const OpCall& call, const HopperVariant& v) {
  static auto& proofs = *new Proofs<kVariants>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_attention_forward,
                                   wrong_hopper_forward};
  return proofs.hold(
      call, index_of(v), kTest, [&] { return v.defines(); }, &v);
}

const char* refuse_shape(const attention::FusedProblem& p, DType type) {
  if (type != DType::Float16 && type != DType::BFloat16) return "not a 16-bit type";
  if (p.block.mask) return "there is a mask";
  if (p.block.dropout > 0) return "there is dropout";
  if (p.depth != p.width) return "values are not as wide as keys";
  if (p.depth > 128 || p.depth % kVector != 0) return "a head is not 8, 16, .. or 128 wide";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max(p.queries, p.keys) > kMost - 256 ||
      divide_up(p.queries, 128) > kMost / 2 / (p.batch * p.heads))
    return "the sizes need 64 bits";
  const auto scale = static_cast<float>(p.scale * kLog2E);
  if (!(scale > 0) || scale > std::numeric_limits<float>::max())
    return "the scale is not positive";  // the largest score is found before scaling
  return nullptr;
}

Planned<HopperVariant> plan(const OpCall& call, const attention::FusedProblem& p) {
  if (const char* reason = refuse_hopper(call, p)) return reason;
  if (!p.outs[0].wanted()) return "the result is not wanted";
  if (!is_hopper_readable(p.outs[0].tensor(), true)) return "the result's lines are not aligned";
  const HopperVariant v = variant_for(call, p);
  if (!is_variant_proven(call, v)) return "the kernel failed its test on this driver";
  return v;
}

void run(const OpCall& call, const attention::FusedProblem& p, const HopperVariant& variant) {
  const auto& args = call.args();
  const TensorView query = args.tensor(Arg::query), key = args.tensor(Arg::key),
                   value = args.tensor(Arg::value);
  const LocalTensor logsumexp = p.outs[1].tensor();
  ContiguousOutput sums(call, logsumexp);
  const Dims& strides = p.outs[0].strides;
  enqueue_hopper_forward(call, {.variant = variant,
                                .batch = p.batch,
                                .heads = p.heads,
                                .key_heads = p.key_heads,
                                .queries = p.queries,
                                .keys = p.keys,
                                .depth = p.depth,
                                .scale = p.scale,
                                .query = query.address(),
                                .key = key.address(),
                                .value = value.address(),
                                .out = p.outs[0].address,
                                .sums = p.outs[1].wanted() ? sums.view().address() : 0,
                                .query_layout = hopper_layout(query),
                                .key_layout = hopper_layout(key),
                                .value_layout = hopper_layout(value),
                                .out_layout = {strides[0], strides[1], strides[2]},
                                .most_groups = call.caps().compute_units});
  sums.finish();
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

const char* refuse_hopper(const OpCall& call, const attention::FusedProblem& p) {
  const auto& args = call.args();
  if (const char* reason = refuse_shape(p, args.tensor(Arg::query).dtype())) return reason;
  for (const Arg operand : {Arg::query, Arg::key, Arg::value})
    if (!is_hopper_readable(args.tensor(operand), false))
      return "an operand's lines are not aligned";
  return nullptr;
}

void enqueue_hopper_forward(const OpCall& call, const HopperForward& f) {
  const AttentionHopperParams params = params_of(f);
  const int64_t groups = std::min<int64_t>(params.tiles, f.most_groups);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const int64_t items = 128 * (f.variant.warpgroups + 1);
  call.launch(kernels::nvidia_hopper::attention::forward::attention_hopper, f.variant.defines(),
              {.out = MemoryRange(f.out, 0, 1),
               .sums = MemoryRange(f.sums, 0, 1),
               .query = MemoryRange(f.query, 0, 1),
               .key = MemoryRange(f.key, 0, 1),
               .value = MemoryRange(f.value, 0, 1),
               .maps = maps,
               .p = params})
      .run({groups * items, 1, 1}, {items, 1, 1});
}

constinit const attention::FusedAlgorithm kForward(
    {.id = "attention_forward.hopper",
     .description = "Hopper's matrix units, scores in registers",
     .provider = &kNvidiaHopper},
    Steps<plan, run>());

}  // namespace ocltensor::opencl::nvidia_hopper
