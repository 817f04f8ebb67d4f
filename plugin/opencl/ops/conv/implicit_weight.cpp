// Gradients of a convolution's weights on GPUs as an implicit product of matrices: what columns
// (columns.cpp) would hold is gathered tile by tile. The pixels are cut into pieces, whose float
// sums are added in a fixed order.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "call/divide_up.h"
#include "conv.h"
#include "conv_implicit_weight_params.h"
#include "kernels/conv.h"
#include "ops/matmul/split_k_sum.h"
#include "phases.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kStep = 8;     // BK of register_tile.h
constexpr int64_t kGroup = 128;  // work-items, and BN of implicit_weight.cl
constexpr uint64_t kLocalMemory = 2 * kStep * (128 + kGroup) * sizeof(float);

// How the weights are numbered as columns of the product.
struct Columns {
  bool taps_inner;
  int64_t stride;  // in memory, between neighbours
};

// The order in which the weights are one line in memory, if there is one.
std::optional<Columns> columns_of(const ConvParams& g) {
  const tk_i64* s = g.weight_strides;
  const int64_t taps_y = g.window[1], taps_x = g.window[2], channels = g.big_channels;
  // From the innermost dimension: size and stride.
  using Line = std::array<std::pair<int64_t, int64_t>, 3>;
  const auto stride = [](const Line& line) -> std::optional<int64_t> {
    std::optional<int64_t> step;
    int64_t inside = 1;
    for (const auto& [size, apart] : line) {
      if (size == 1) continue;
      if (!step) step = apart;
      if (apart != *step * inside) return std::nullopt;
      inside *= size;
    }
    return step.value_or(1);
  };
  if (const auto found = stride({{{channels, s[1]}, {taps_x, s[4]}, {taps_y, s[3]}}}))
    return Columns{.taps_inner = false, .stride = *found};
  if (const auto found = stride({{{taps_x, s[4]}, {taps_y, s[3]}, {channels, s[1]}}}))
    return Columns{.taps_inner = true, .stride = *found};
  return std::nullopt;
}

struct WeightPlan {
  ConvImplicitWeightParams k;
  bool channels_last, whole_rows;
  int64_t tile, pieces;
};

// The number of pieces that takes least time, where each round of work-groups takes as long as one
// of them: a compute unit holds two; storing a tile and adding it up takes as long as some steps.
int64_t best_pieces(int64_t tiles, int64_t steps, int64_t units) {
  constexpr int64_t kMost = 64, kFewestSteps = 16, kStoring = 10;
  int64_t best = 1, least = INT64_MAX;
  for (int64_t pieces = 1; pieces <= std::clamp<int64_t>(steps / kFewestSteps, 1, kMost);
       ++pieces) {
    const int64_t rounds = divide_up(tiles * pieces, 2 * units);
    const int64_t time = rounds * (divide_up(steps, pieces) + (pieces > 1 ? kStoring : 0));
    if (time < least) {
      best = pieces;
      least = time;
    }
  }
  return best;
}

const char* refuse(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  if (p.direction != Direction::Weight) return "not the gradient of weights";
  if (const char* reason = refuse_phases(p)) return reason;
  if (!call.caps().large_register_tiles()) return "a work-item has too few registers";
  if (g.groups != 1) return "several groups";
  if (g.small_channels < kStep) return "few channels";
  if (g.batch * g.out[1] * g.out[2] == 0) return "nothing to sum";
  if (call.caps().max_work_group_size < kGroup) return "work-groups are too small";
  if (call.caps().local_memory < kLocalMemory) return "too little local memory";
  const auto reach = [](const tk_i64* sizes, const tk_i64* strides) {
    return extent(Dims{sizes[1], sizes[2]}, Dims{strides[3], strides[4]});
  };
  constexpr int64_t kMost = INT32_MAX / 2;
  for (const Extent& e : {reach(g.in, g.big_strides), reach(g.out, g.small_strides)})
    if (e.low < 0 || e.high > kMost) return "the sizes need 64 bits";
  const int64_t columns = g.big_channels * g.window[1] * g.window[2];
  const int64_t steps = g.batch * g.out[1] * divide_up(g.out[2], kStep);
  if (columns > kMost || steps > kMost) return "the sizes need 64 bits";
  return nullptr;
}

Planned<WeightPlan> plan(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse(call, p)) return reason;
  const ConvParams& g = p.params;
  const std::optional<Columns> columns = columns_of(g);
  if (!columns) return "neither taps nor channels of the weights are one line";
  const Axis y = forward_axis(g, 1), x = forward_axis(g, 2);
  const tk_i64 *big = g.big_strides, *small = g.small_strides;
  const int64_t taps = g.window[1] * g.window[2];
  WeightPlan made{};
  made.k = {.m = g.small_channels,
            .n = g.big_channels * taps,
            .taps_inner = columns->taps_inner,
            .channels = g.big_channels,
            .taps = taps,
            .tap_columns = g.window[2],
            .images = g.batch,
            .map_rows = y.outputs,
            .row_pixels = x.outputs,
            .rows = g.in[1],
            .columns = g.in[2],
            .small_image = small[0],
            .small_channel = small[1],
            .small_row = small[3],
            .small_column = small[4],
            .big_image = big[0],
            .big_channel = big[1],
            .big_row = big[3],
            .big_column = big[4],
            .first = {y.start, x.start},
            .pixel_step = {y.stride, x.stride},
            .tap_step = {y.dilation, x.dilation},
            .steps = g.batch * y.outputs * divide_up(x.outputs, kStep),
            .piece = 0,
            .target_m = g.weight_strides[0],
            .target_n = columns->stride};
  const auto lines_of_channels = [&](tb_address address, const tk_i64* strides, int64_t channels) {
    return strides[1] == 1 && channels % 4 == 0 &&
           whole_vectors(address, p.dtype, {strides[0], strides[3], strides[4]});
  };
  made.channels_last = !columns->taps_inner && lines_of_channels(p.big, big, g.big_channels) &&
                       lines_of_channels(p.small, small, g.small_channels);
  made.whole_rows = !made.channels_last && small[4] == 1 && x.outputs % kStep == 0 &&
                    whole_vectors(p.small, p.dtype, {small[0], small[1], small[3]});
  made.tile = made.k.m > 64 ? 128 : 64;
  const int64_t tiles = divide_up(made.k.m, made.tile) * divide_up(made.k.n, kGroup);
  made.pieces = best_pieces(tiles, made.k.steps, call.caps().compute_units);
  return made;
}

void launch(const OpCall& call, const Problem& p, const WeightPlan& plan,
            const ConvImplicitWeightParams& k, const MemoryRange& target) {
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::BM, plan.tile)
      .set(define::TM, plan.tile / 8)
      .set(define::CHANNELS_LAST, plan.channels_last)
      .set(define::WHOLE_ROWS, plan.whole_rows)
      .set(define::PIECES, plan.pieces > 1);
  call.launch(kernels::conv::implicit_weight::implicit_weight, d,
              {.target = target, .small = memory_of_small(p), .big = memory_of_big(p), .p = k})
      .run({divide_up(k.n, kGroup) * kGroup, divide_up(k.m, plan.tile), plan.pieces},
           {kGroup, 1, 1});
}

void run(const OpCall& call, const Problem& p, const WeightPlan& plan) {
  ConvImplicitWeightParams k = plan.k;
  if (plan.pieces == 1) return launch(call, p, plan, k, memory_of_weight(p));
  const matmul::Results sum{
      .types = p.dtype, .batch = 1, .m = k.m, .n = k.n, .c = {p.weight, 0, k.target_m, k.target_n}};
  k.steps = divide_up(k.steps, plan.pieces);
  k.piece = k.m * k.n;
  k.target_m = k.n;
  k.target_n = 1;
  const auto bytes = static_cast<uint64_t>(plan.pieces * k.piece) * sizeof(float);
  const Scratch sums = call.scratch(bytes);
  launch(call, p, plan, k, sums);
  matmul::sum_pieces(call, sum, plan.pieces, sums.address());
}

}  // namespace

constinit const AlgorithmFor<Problem> kImplicitWeight(
    {.id = "conv.implicit_weight",
     .description = "products that gather their tiles",
     .style = DeviceStyle::Gpu},
    Steps<plan, run>());

}  // namespace ocltensor::opencl::conv
