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
constexpr size_t kVariants = 2 * 2 * 2;

Defines pass_defines(const HopperBackward& b, int64_t pass) {
  const bool small = b.panel == 128 && pass == 0;  // two results leave fewer registers
  const int64_t stages = b.panel == 128 && pass == 1 ? 2 : 3;
  Defines d;
  d.set(define::PASS, pass)
      .type(define::TYPE, b.type)
      .set(define::DEPTH, b.panel)
      .set(define::BN, small ? 64 : 128);
  return d.set(define::STAGES, stages).set(define::CAUSAL, b.causal);
}

int64_t padded_rows(const HopperBackward& b) { return divide_up(b.queries, kTileRows) * kTileRows; }
uint64_t bits(double number) {
  const auto single = static_cast<float>(number);
  uint32_t word = 0;
  std::memcpy(&word, &single, sizeof word);
  return word;
}

void make_statistics(const OpCall& call, const HopperBackward& b, const Scratch& rows) {
  const AttentionHopperRowsParams params{b.out_strides, b.grad_strides, b.heads,
                                         b.queries,     padded_rows(b), b.depth};
  call.launch(kernels::nvidia_hopper::attention::backward_rows::attention_hopper_rows,
              Defines().type(define::TYPE, b.type),
              {.rows = rows,
               .sums = MemoryRange(b.sums, 0, 1),
               .out = MemoryRange(b.out, 0, 1),
               .grad = MemoryRange(b.grad, 0, 1),
               .p = params})
      .run({padded_rows(b) / 4 * 128, b.batch * b.heads, 1}, {128, 1, 1});
}

AttentionHopperBackwardParams pass_params(const HopperBackward& b, int64_t pass) {
  AttentionHopperBackwardParams p{};
  const HopperTensor keys[] = {b.key_layout, b.value_layout};
  const HopperTensor queries[] = {b.query_layout, b.grad_layout};
  for (size_t i = 0; i < 2; ++i) {
    p.kept[i] = pass == 0 ? keys[i] : queries[i];
    p.streamed[i] = pass == 0 ? queries[i] : keys[i];
  }
  p.out[0] = pass == 0 ? b.grad_key_strides : b.grad_query_strides;
  p.out[1] = b.grad_value_strides;
  p.heads = pass == 0 ? b.key_heads : b.heads;
  p.groups = b.heads / b.key_heads;
  p.kept_rows = pass == 0 ? b.keys : b.queries;
  p.streamed_rows = pass == 0 ? b.queries : b.keys;
  p.depth = b.depth;
  p.padded = padded_rows(b);
  p.all_heads = b.batch * p.heads;
  p.row_tiles = divide_up(p.kept_rows, kTileRows);
  p.tiles = p.all_heads * p.row_tiles;
  p.bundle = hopper_bundle(p.all_heads, p.streamed_rows * b.depth * 4 * (pass == 0 ? p.groups : 1),
                           pass == 0 ? 1 : p.groups);
  p.scale = bits(b.scale);
  p.scale_log2 = bits(b.scale * kLog2E);
  p.wanted[0] = (pass == 0 ? b.grad_key : b.grad_query) != 0;
  p.wanted[1] = b.grad_value != 0;
  return p;
}

void run_pass(const OpCall& call, const HopperBackward& b, const Scratch& rows, int64_t pass) {
  const AttentionHopperBackwardParams params = pass_params(b, pass);
  const int64_t groups = std::min<int64_t>(params.tiles, b.most_groups);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const auto both = [](tb_address first, tb_address second) {
    return std::array{MemoryRange(first, 0, 1), MemoryRange(second, 0, 1)};
  };
  const auto keys = both(b.key, b.value), queries = both(b.query, b.grad);
  call.launch(kernels::nvidia_hopper::attention::backward::attention_hopper_backward,
              pass_defines(b, pass),
              {.out = pass == 0 ? both(b.grad_key, b.grad_value) : both(b.grad_query, 0),
               .kept = pass == 0 ? keys : queries,
               .streamed = pass == 0 ? queries : keys,
               .rows = rows,
               .maps = maps,
               .p = params})
      .run({groups * kItems, 1, 1}, {kItems, 1, 1});
}

HopperBackward sample_of(const OpCall& call, const attention::FusedProblem& p) {
  HopperBackward b{};
  b.type = call.args().tensor(Arg::query).dtype();
  b.panel = p.depth <= 64 ? 64 : 128;
  b.causal = p.block.causal;
  return b;
}

bool is_variant_proven(const OpCall& call, const HopperBackward& b) {
  static auto& proofs = *new Proofs<kVariants>;  // leaked: streams may end after static objects
  const size_t index =
      (b.type == DType::BFloat16 ? 4 : 0) + (b.panel == 128 ? 2 : 0) + (b.causal ? 1 : 0);
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_attention_backward,
                                   wrong_hopper_backward};
  return proofs.hold(
      call, index, kTest, [&] { return pass_defines(b, 0); }, &b);
}

// What the kernels are specialised by; run() fills in addresses and layouts.
Planned<HopperBackward> plan(const OpCall& call, const attention::FusedProblem& p) {
  if (const char* reason = refuse_hopper(call, p)) return reason;
  if (p.batch * p.heads > kMostHeads) return "too many heads";
  for (const attention::OutputPlace& out : p.outs)
    if (out.wanted() && !is_hopper_readable(out.tensor(), true))
      return "a result's lines are not aligned";
  const HopperBackward sample = sample_of(call, p);
  if (!is_variant_proven(call, sample)) return "the kernel failed its test on this driver";
  return sample;
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
FlashTensor strides_of(TensorView t) { return {t.stride(0), t.stride(1), t.stride(2)}; }
FlashTensor strides_of(const attention::OutputPlace& out) {
  return out.wanted() ? FlashTensor{out.strides[0], out.strides[1], out.strides[2]} : FlashTensor{};
}

void run(const OpCall& call, const attention::FusedProblem& p, const HopperBackward& sample) {
  const auto& args = call.args();
  const Readable grad(call, args.tensor(Arg::grad_out)), out(call, args.tensor(Arg::out));
  const Contiguous sums(call, args.tensor(Arg::logsumexp));
  const TensorView query = args.tensor(Arg::query), key = args.tensor(Arg::key);
  const TensorView value = args.tensor(Arg::value);
  const auto place = [](const attention::OutputPlace& o) { return o.wanted() ? o.address : 0; };
  HopperBackward b = sample;
  b.batch = p.batch;
  b.heads = p.heads;
  b.key_heads = p.key_heads;
  b.queries = p.queries;
  b.keys = p.keys;
  b.depth = p.depth;
  b.scale = p.scale;
  b.query = query.address();
  b.key = key.address();
  b.value = value.address();
  b.grad = grad.view().address();
  b.out = out.view().address();
  b.sums = sums.view().address();
  b.grad_query = place(p.outs[0]);
  b.grad_key = place(p.outs[1]);
  b.grad_value = place(p.outs[2]);
  b.query_layout = hopper_layout(query);
  b.key_layout = hopper_layout(key);
  b.value_layout = hopper_layout(value);
  b.grad_layout = hopper_layout(grad.view());
  b.grad_strides = strides_of(grad.view());
  b.out_strides = strides_of(out.view());
  b.grad_query_strides = strides_of(p.outs[0]);
  b.grad_key_strides = strides_of(p.outs[1]);
  b.grad_value_strides = strides_of(p.outs[2]);
  b.most_groups = call.caps().compute_units;
  enqueue_hopper_backward(call, b);
}

}  // namespace

void enqueue_hopper_backward(const OpCall& call, const HopperBackward& b) {
  const Scratch rows =
      call.scratch(static_cast<uint64_t>(b.batch * b.heads * padded_rows(b)) * 2 * sizeof(float));
  make_statistics(call, b, rows);
  if (b.grad_key != 0 || b.grad_value != 0) run_pass(call, b, rows, 0);
  if (b.grad_query != 0) run_pass(call, b, rows, 1);
}

constinit const attention::FusedAlgorithm kBackward(
    {.id = "attention_backward.hopper",
     .description = "Hopper's matrix units, scores in registers",
     .provider = &kNvidiaHopper},
    Steps<plan, run>());

}  // namespace ocltensor::opencl::nvidia_hopper
