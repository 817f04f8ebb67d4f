// Depthwise convolutions of channels_last maps for CPU drivers, all three directions.
#include "kernels/conv.h"
#include "ops/copy/copy.h"
#include "rows.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kVector = 16;    // grouped_channels.cl
constexpr int64_t kMostTaps = 64;  // the same
constexpr int64_t kWidest = 8;     // taps of a row, whose sums are in registers

const char* refuse(const OpCall&, const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  const ConvParams& g = p.params;
  if (g.groups < kVector || g.big_channels != 1 || g.small_channels != 1)
    return "not depthwise with a vector of channels";
  if (g.big_strides[1] != 1 || g.small_strides[1] != 1) return "maps are not in channels_last";
  if (g.batch * g.in[1] * g.in[2] * g.out[1] * g.out[2] == 0) return "an empty map";
  const int64_t taps = g.window[1] * g.window[2];
  if (taps == 0 || taps > kMostTaps || g.window[2] > kWidest)
    return "a window of very many elements";
  return nullptr;
}

// A copy of `source` as float32 with other strides, which leave no gap.
Scratch packed(const OpCall& call, const LocalTensor& source, const Dims& strides) {
  const Dims sizes(source.view().sizes());
  Scratch copy = call.scratch(static_cast<uint64_t>(numel(sizes)) * sizeof(float));
  copy_tensor(call, LocalTensor(copy.address(), DType::Float32, sizes, strides), source);
  return copy;
}
Scratch packed_weights(const OpCall& call, const Problem& p) {  // [tap][channel]
  const ConvParams& g = p.params;
  const auto& w = g.weight_strides;
  return packed(
      call,
      LocalTensor(p.weight, p.dtype, {g.groups, g.window[1], g.window[2]}, {w[0], w[3], w[4]}),
      {1, g.window[2] * g.groups, g.groups});
}

void run_weight(const OpCall& call, const Problem& p) {
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::BACK, int64_t{0})
      .set(define::TAPS_X, p.params.window[2]);
  call.launch(kernels::conv::grouped_channels::weight_channels, d,
              {.w = memory_of_weight(p),
               .big = memory_of_big(p),
               .small = memory_of_small(p),
               .p = p.params})
      .run({divide_up(p.params.groups, kVector), p.params.window[1], 1}, {1, 1, 1});
}

void run(const OpCall& call, const Problem& p) {
  if (p.direction == Direction::Weight) return run_weight(call, p);
  const ConvParams& g = p.params;
  const bool back = p.direction == Direction::Data;
  const Scratch weights = packed_weights(call, p);
  std::optional<Scratch> bias;
  if (p.bias)
    bias.emplace(packed(call, LocalTensor(*p.bias, p.dtype, {g.groups}, {g.bias_stride}), {1}));
  const int64_t rows = g.batch * (back ? g.in[1] : g.out[1]);
  const int64_t each = divide_up(rows, work_items(call));
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::BACK, back).set(define::ADD_SELF, p.bias.has_value());
  call.launch(kernels::conv::grouped_channels::conv_channels, d,
              {.to = back ? memory_of_big(p) : memory_of_small(p),
               .from = back ? memory_of_small(p) : memory_of_big(p),
               .weights = weights,
               .bias = bias ? MemoryRange(*bias) : MemoryRange(nullptr),
               .p = g,
               .rows = each})
      .run({divide_up(rows, each), 1, 1}, {1, 1, 1});
}

}  // namespace

constinit const AlgorithmFor<Problem> kGroupedChannels({.id = "conv.grouped_channels",
                                                        .description = "vectors of channels",
                                                        .style = DeviceStyle::Cpu},
                                                       Steps<refuse, run>());

}  // namespace ocltensor::opencl::conv
