// Attention on CPU drivers without a matrix of scores: launches kernels/attention/flash_*.cl.
#include <cstring>

#include "call/divide_up.h"
#include "call/division.h"
#include "fused.h"
#include "kernels/attention.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::attention {
namespace {

// Values of kernels/include/flash.h, flash_forward.cl and flash_backward.cl.
constexpr int64_t kPanel = 32;
constexpr int64_t kTile = 8;
constexpr int64_t kMostRows = 64;
constexpr int64_t kKeysBackward = 128;
constexpr uint64_t kLocalMemory = 2 * 64 * (kKeysBackward + 16) * sizeof(float);
constexpr int64_t kMostParts = 8;

int64_t padded(int64_t n) { return divide_up(n, kPanel) * kPanel; }
bool has_float_rows(DType type, const Dims& sizes, const Dims& strides, bool pad) {
  return type == DType::Float32 && (sizes[3] == 1 || strides[3] == 1) &&
         (!pad || sizes[3] % kPanel == 0);
}
Dims padded_strides(const Dims& s) {
  const int64_t row = padded(s[3]);
  return {s[1] * s[2] * row, s[2] * row, row, 1};
}
uint64_t padded_bytes(const Dims& s) {
  return static_cast<uint64_t>(s[0] * s[1] * s[2] * padded(s[3])) * sizeof(float);
}

// A tensor of four dimensions in float32 whose rows are contiguous and, with `pad`, may be read up
// to the next multiple of 32 elements: the tensor itself if it is such, else a copy.
class FloatRows {
 public:
  FloatRows(const OpCall& call, TensorView tensor, bool pad) : sizes_(tensor.sizes()) {
    strides_ = Dims(tensor.strides());
    address_ = tensor.address();
    if (has_float_rows(tensor.dtype(), sizes_, strides_, pad)) return;
    strides_ = padded_strides(sizes_);
    memory_.emplace(call.scratch(padded_bytes(sizes_)));
    address_ = memory_->address();
    copy_tensor(call, LocalTensor(address_, DType::Float32, sizes_, strides_), tensor);
  }
  FlashTensor strides() const { return {strides_[0], strides_[1], strides_[2]}; }
  operator MemoryRange() const {  // NOLINT: implicit on purpose
    if (memory_) return *memory_;
    return LocalTensor(address_, DType::Float32, sizes_, strides_);
  }

 private:
  Dims sizes_, strides_;
  tb_address address_;
  std::optional<Scratch> memory_;
};

// A result of that layout, `pieces` times: the output itself if it is such, else scratch memory
// whose pieces finish() adds up and converts.
class FloatResult {
 public:
  FloatResult(const OpCall& call, const OutputPlace& out, const Dims& sizes, int64_t pieces = 1)
      : call_(call), out_(out), sizes_(sizes), pieces_(pieces), strides_(out.strides) {
    if (pieces == 1 && out.wanted() && has_float_rows(out.dtype, sizes, out.strides, true)) return;
    strides_ = padded_strides(sizes);
    memory_.emplace(call.scratch(static_cast<uint64_t>(pieces) * padded_bytes(sizes)));
  }
  FlashTensor strides() const { return {strides_[0], strides_[1], strides_[2]}; }
  int64_t piece_step() const { return sizes_[0] * strides_[0]; }
  operator MemoryRange() const {  // NOLINT: implicit on purpose
    if (memory_) return *memory_;
    return out_.tensor();
  }
  void finish() const {
    if (!memory_ || !out_.wanted()) return;
    const LocalTensor out = out_.tensor();
    if (pieces_ == 1)
      return copy_tensor(call_, out,
                         LocalTensor(memory_->address(), DType::Float32, sizes_, strides_));
    static constexpr reduce::Reduction kSum{1, {{"a", "x + y", "0", "x"}}};
    Dims shape = sizes_, strides = strides_;
    shape.insert(0, pieces_);
    strides.insert(0, piece_step());
    const LocalTensor all(memory_->address(), DType::Float32, shape, strides);
    const TensorView from = all, to = out;
    reduce::launch_reduce(call_, {&kSum, DType::Float32, shape, 1, {&from}, {&to}});
  }

 private:
  const OpCall& call_;
  const OutputPlace& out_;
  Dims sizes_;
  int64_t pieces_;
  Dims strides_;
  std::optional<Scratch> memory_;
};

// Packs rows into panels [batch * heads][rows / 32][depth][32].
Scratch make_panels(const OpCall& call, TensorView tensor) {
  const int64_t heads = tensor.size(0) * tensor.size(1);
  const int64_t panels = divide_up(tensor.size(2), kPanel);
  const int64_t elements = heads * panels * tensor.size(3) * kPanel;
  Scratch memory(call.scratch(static_cast<uint64_t>(elements) * sizeof(float)));
  const FlashPackParams p{{tensor.stride(0), tensor.stride(1), tensor.stride(2)},
                          tensor.size(1),
                          tensor.size(2),
                          tensor.size(3),
                          tensor.size(3) == 1 ? 1 : tensor.stride(3)};
  call.launch(kernels::attention::flash_pack::flash_pack,
              Defines().type(define::TYPE, tensor.dtype()),
              {.panels = memory, .in = tensor, .p = p})
      .run({panels, heads, 1}, {1, 1, 1});
  return memory;
}

Defines defines_of(const FusedProblem& p) {
  return block_defines(p.block).set(define::FAST_EXP, 1);
}

const char* refuse(const OpCall& call, const FusedProblem& p) {
  if (p.type != DType::Float32) return "not computed in float32";
  if (call.caps().local_memory < kLocalMemory) return "too little local memory";
  return nullptr;
}

const char* pass_over(const OpCall&, const FusedProblem& p) {
  return p.queries < kTile ? "too few queries to pack the keys for" : nullptr;
}

void run_forward(const OpCall& call, const FusedProblem& p) {
  const auto& args = call.args();
  const FloatRows query(call, args.tensor(Arg::query), false);
  const FloatRows value(call, args.tensor(Arg::value), true);
  const Scratch key_panels = make_panels(call, args.tensor(Arg::key));
  const FloatResult out(call, p.outs[0], {p.batch, p.heads, p.queries, p.width});
  const LocalTensor logsumexp = p.outs[1].tensor();
  ContiguousOutput sums(call, logsumexp);
  FlashParams f = flash_params(p);
  f.query = query.strides();
  f.value = value.strides();
  f.out = out.strides();
  const int64_t heads = p.batch * p.heads;
  f.rows = kMostRows;
  while (f.rows > kTile && heads * divide_up(p.queries, f.rows) < 4 * call.caps().compute_units)
    f.rows /= 2;
  call.launch(kernels::attention::flash_forward::flash_forward,
              defines_of(p).set(define::SUMS, p.outs[1].wanted()),
              {.out = out,
               .sums = p.outs[1].wanted() ? MemoryRange(sums.view()) : nullptr,
               .query = query,
               .key_panels = key_panels,
               .value = value,
               .mask = memory_of_mask(p.block),
               .p = f})
      .run({divide_up(p.queries, f.rows), heads, 1}, {1, 1, 1});
  out.finish();
  sums.finish();
}

// Into how many pieces the keys of a head are cut: one, unless the device would have idle threads
// then. Each further piece costs another sum of the queries' gradient.
int64_t key_pieces(const OpCall& call, const FusedProblem& p) {
  const int64_t heads = p.batch * p.key_heads, threads = call.caps().compute_units;
  const int64_t most = std::min(kMostParts, divide_up(p.keys, kKeysBackward));
  int64_t best = 1;
  double lowest = 0;
  for (int64_t pieces = 1; pieces <= most; ++pieces) {
    const double rounds = static_cast<double>(divide_up(heads * pieces, threads));
    const double time =
        rounds / static_cast<double>(pieces) * (1 + 0.02 * static_cast<double>(pieces));
    if (pieces > 1 && time >= lowest) continue;
    lowest = time;
    best = pieces;
  }
  return best;
}

void run_backward(const OpCall& call, const FusedProblem& p) {
  const auto& args = call.args();
  const FloatRows grad(call, args.tensor(Arg::grad_out), true);
  const FloatRows query(call, args.tensor(Arg::query), true);
  const FloatRows key(call, args.tensor(Arg::key), true);
  const FloatRows out(call, args.tensor(Arg::out), false);
  const Contiguous sums(call, args.tensor(Arg::logsumexp));
  const Scratch key_panels = make_panels(call, args.tensor(Arg::key));
  const Scratch value_panels = make_panels(call, args.tensor(Arg::value));
  FlashParams f = flash_params(p);
  f.keys_at_once = divide_up(divide_up(p.keys, key_pieces(call, p)), kKeysBackward) * kKeysBackward;
  const int64_t pieces = divide_up(p.keys, f.keys_at_once);
  const FloatResult grad_query(call, p.outs[0], {p.batch, p.heads, p.queries, p.depth}, pieces);
  const FloatResult grad_key(call, p.outs[1], {p.batch, p.key_heads, p.keys, p.depth});
  const FloatResult grad_value(call, p.outs[2], {p.batch, p.key_heads, p.keys, p.width});
  f.query = query.strides();
  f.key = key.strides();
  f.grad = grad.strides();
  f.out = out.strides();
  f.grad_query = grad_query.strides();
  f.grad_key = grad_key.strides();
  f.grad_value = grad_value.strides();
  f.piece_step = grad_query.piece_step();
  call.launch(kernels::attention::flash_backward::flash_backward, defines_of(p),
              {.grad_query = grad_query,
               .grad_key = grad_key,
               .grad_value = grad_value,
               .grad = grad,
               .query = query,
               .key = key,
               .key_panels = key_panels,
               .value_panels = value_panels,
               .out = out,
               .sums = sums.view(),
               .mask = memory_of_mask(p.block),
               .p = f})
      .run({pieces, p.batch * p.key_heads, 1}, {1, 1, 1});
  for (const FloatResult* result : {&grad_query, &grad_key, &grad_value}) result->finish();
}

}  // namespace

FlashParams flash_params(const FusedProblem& p) {
  ScoreBlock all = p.block;
  all.matrices = p.batch * p.heads;
  all.queries = p.queries;
  all.keys = p.keys;
  FlashParams f{};
  f.scores = block_params(all);
  f.heads = p.heads;
  f.groups = p.groups();
  f.depth = p.depth;
  f.width = p.width;
  const auto scale = static_cast<float>(p.scale);
  std::memcpy(&f.scale, &scale, sizeof scale);
  return f;
}

constinit const FusedAlgorithm kFlashForward({.id = "attention_forward.flash",
                                              .description = "rows of scores in local memory",
                                              .style = DeviceStyle::Cpu},
                                             Steps<refuse, run_forward>(), pass_over);
constinit const FusedAlgorithm kFlashBackward({.id = "attention_backward.flash",
                                               .description = "tiles of scores in local memory",
                                               .style = DeviceStyle::Cpu},
                                              Steps<refuse, run_backward>(), pass_over);

}  // namespace ocltensor::opencl::attention
