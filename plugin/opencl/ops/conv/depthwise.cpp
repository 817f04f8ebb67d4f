// Convolutions with few channels in a group for GPUs, which read the maps directly: forward and
// data of depthwise convolutions, and weight gradients of any with many groups.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "call/divide_up.h"
#include "conv.h"
#include "kernels/conv.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kItems = 256;     // of a work-group; ITEMS of depthwise_weight.cl
constexpr int64_t kMostGroups = 8;  // columns.cpp takes no more groups

// The edge of a square window that has a specialised kernel; 0: the kernel for any geometry.
int64_t written_out(const ConvParams& g) {
  const int64_t edge = g.window[1];
  const bool square = g.window[2] == edge && g.stride[1] == g.stride[2];
  const bool plain = g.dilation[1] == 1 && g.dilation[2] == 1 && g.stride[1] <= 2;
  return square && plain && (edge == 3 || edge == 5 || edge == 7) ? edge : 0;
}

// Rows of a work-item: few enough to leave work for the whole device, and to fit its registers; of
// 8 and 7 those with which fewer rows are read, as maps of 14 and 28 rows are common. Strips of a
// strided convolution's data begin at multiples of the stride.
int64_t rows_of(const OpCall& call, const Problem& p, int64_t window, int64_t height,
                int64_t columns) {
  const int64_t full = 1024 * static_cast<int64_t>(call.caps().compute_units);
  const auto read = [&](int64_t rows) { return divide_up(height, rows) * (rows + window - 1); };
  const bool registers = window == 3 || p.direction == Direction::Weight;
  const bool may_be_odd = p.params.stride[1] == 1;
  const int64_t most = !registers ? 4 : may_be_odd && read(7) < read(8) ? 7 : 8;
  return height < 2 ? (window == 0 ? 1 : 2)
                    : (columns * divide_up(height, most) < full || height < most ? 2 : most);
}

// Whether a work-item may have two channels, which it loads as one word: 16-bit types in
// channels_last.
bool in_pairs(const Problem& p, int64_t window) {
  const ConvParams& g = p.params;
  if (size_of(p.dtype) != 2 || window == 0 || g.small_channels != 1 || g.groups % 2 != 0)
    return false;
  const auto fits = [](const tk_i64(&strides)[5], tb_address address) {
    return strides[1] == 1 && strides[4] != 1 && address % 4 == 0 && strides[0] % 2 == 0 &&
           strides[3] % 2 == 0 && strides[4] % 2 == 0;
  };
  return fits(g.big_strides, p.big) && fits(g.small_strides, p.small);
}

// Whether a work-item may have two adjacent columns, whose windows share most of what they load.
bool in_columns(const Problem& p, int64_t window) {
  const ConvParams& g = p.params;
  if (window == 0 || g.stride[1] != 1 || p.dtype == DType::Float64) return false;
  const auto fits = [&](const tk_i64(&sizes)[3], const tk_i64(&strides)[5], tb_address address) {
    return strides[4] == 1 && sizes[2] % 2 == 0 &&
           (strides[0] | strides[1] | strides[3]) % 2 == 0 &&
           address % static_cast<tb_address>(2 * size_of(p.dtype)) == 0;
  };
  return fits(g.in, g.big_strides, p.big) && fits(g.out, g.small_strides, p.small);
}

Defines defines(const Problem& p, int64_t window, int64_t rows, bool channels_last) {
  const ConvParams& g = p.params;
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::FLOATING, 1).set(define::WIDE, 1);
  d.set(define::WINDOW, window).set(define::ROWS, rows).set(define::CHANNELS_LAST, channels_last);
  if (window > 0) d.set(define::STRIDE, g.stride[1]);
  return d;
}

void run_maps(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  const int64_t window = written_out(g);
  const int64_t height = forward ? g.out[1] : g.in[1], width = forward ? g.out[2] : g.in[2];
  const int64_t channels = g.groups * (forward ? g.small_channels : g.big_channels);
  const bool paired = in_pairs(p, window), two_columns = in_columns(p, window);
  const int64_t columns = g.batch * channels * width / (paired || two_columns ? 2 : 1);
  const int64_t rows = rows_of(call, p, window, height, columns);
  const auto& strides = forward ? g.small_strides : g.big_strides;
  Defines d = defines(p, window, rows, strides[1] == 1 && strides[4] != 1);
  d.set(define::ADD_SELF, p.bias.has_value()).set(define::PAIRED, paired);
  d.set(define::COLUMNS, two_columns ? 2 : 1);
  if (two_columns) d.set(define::ODD, g.padding[2] % 2);
  if (window > 0 && !forward) {
    const int64_t shift = g.padding[1] - window + 1;
    d.set(define::PHASE, (shift % g.stride[1] + g.stride[1]) % g.stride[1]);
  }
  const int64_t items = divide_up(columns * divide_up(height, rows), kItems) * kItems;
  call.launch(forward ? kernels::conv::depthwise_forward::depthwise_forward
                      : kernels::conv::depthwise_data::depthwise_data,
              d,
              {.big = memory_of_big(p),
               .small = memory_of_small(p),
               .weight = memory_of_weight(p),
               .bias = memory_of_bias(p),
               .p = g})
      .run({items, 1, 1}, {kItems, 1, 1});
}

// Cuts all positions into pieces, each of whole rounds of a work-group, until every compute unit
// has four work-groups.
struct Pieces {
  int64_t count, strips;
};
Pieces cut(const OpCall& call, int64_t groups, int64_t strips) {
  constexpr int64_t kMost = 64;
  const int64_t wanted = divide_up(4 * static_cast<int64_t>(call.caps().compute_units), groups);
  const int64_t pieces = std::clamp<int64_t>(std::min(wanted, strips / kItems), 1, kMost);
  const int64_t length = divide_up(divide_up(strips, pieces), kItems) * kItems;
  return {divide_up(strips, length), length};
}

void add_pieces(const OpCall& call, const Problem& p, const Defines& d, const Scratch& sums,
                int64_t pairs, int64_t taps, int64_t pieces) {
  constexpr int64_t kGroup = 64;
  const int64_t items = divide_up(pairs * taps, kGroup) * kGroup;
  call.launch(kernels::conv::depthwise_weight::depthwise_weight_sum, d,
              {.weight = memory_of_weight(p),
               .sums = sums,
               .pairs = static_cast<uint32_t>(pairs),
               .pieces = static_cast<uint32_t>(pieces),
               .p = p.params})
      .run({items, 1, 1}, {kGroup, 1, 1});
}

void run_weight(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const int64_t window = written_out(g), taps = g.window[1] * g.window[2];
  const int64_t pairs = g.groups * g.small_channels * g.big_channels;
  const int64_t grid_taps = window > 0 ? 1 : taps;
  const int64_t rows = rows_of(call, p, window, g.out[1], pairs * g.batch * g.out[2]);
  const int64_t strips = g.batch * divide_up(g.out[1], rows) * g.out[2];
  const Pieces pieces = cut(call, pairs * grid_taps, strips);
  Defines d = defines(p, window, rows, false);
  d.set(define::PARTIAL, pieces.count > 1).set(define::PAIRED, false);
  d.set(define::COLUMNS, 1);
  std::optional<Scratch> sums;
  const int64_t bytes = pieces.count * pairs * taps * (p.dtype == DType::Float64 ? 8 : 4);
  if (pieces.count > 1) sums.emplace(call.scratch(static_cast<uint64_t>(bytes)));
  call.launch(kernels::conv::depthwise_weight::depthwise_weight, d,
              {.weight = sums ? MemoryRange(*sums) : memory_of_weight(p),
               .big = memory_of_big(p),
               .small = memory_of_small(p),
               .strips = static_cast<uint32_t>(pieces.strips),
               .p = g})
      .run({pairs * kItems, pieces.count, grid_taps}, {kItems, 1, 1});
  if (sums) add_pieces(call, p, d, *sums, pairs, taps, pieces.count);
}

void run(const OpCall& call, const Problem& p) {
  p.direction == Direction::Weight ? run_weight(call, p) : run_maps(call, p);
}

// Kernels count positions, and elements of a map, in 32 bits.
bool is_small(const ConvParams& g) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto reach = [](const tk_i64(&sizes)[3], const tk_i64(&strides)[5]) {
    return std::abs(strides[3]) * sizes[1] + std::abs(strides[4]) * sizes[2];
  };
  const auto extent = [&g](int d) {
    return (g.in[d] + g.out[d] * g.stride[d]) + g.window[d] * g.dilation[d] + g.padding[d];
  };
  const int64_t channels = g.groups * std::max(g.big_channels, g.small_channels);
  const int64_t lines = std::max(g.in[1] * g.in[2], g.out[1] * g.out[2]);
  return extent(1) < kMost && extent(2) < kMost && reach(g.in, g.big_strides) < kMost &&
         reach(g.out, g.small_strides) < kMost && g.batch * channels < kMost &&
         g.batch * channels * lines < 2 * kMost &&
         g.groups * g.small_channels * g.big_channels * g.window[1] * g.window[2] < kMost / kItems;
}

const char* refuse(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  if (g.groups == 1) return "one group";
  if (p.direction != Direction::Weight && g.big_channels != 1) return "several input channels";
  if (g.window[0] != 1 || g.in[0] != 1 || g.out[0] != 1) return "three dimensions";
  if (g.stride[0] != 1 || g.padding[0] != 0) return "three dimensions";
  if (g.batch * g.out[1] * g.out[2] * g.in[1] * g.in[2] == 0) return "nothing to sum";
  if (call.caps().max_work_group_size < static_cast<size_t>(kItems))
    return "work-groups are too small";
  return is_small(g) ? nullptr : "the sizes need 64 bits";
}
const char* pass_over(const OpCall&, const Problem& p) {
  const ConvParams& g = p.params;
  return g.big_channels > 1 && g.groups <= kMostGroups ? "few groups run as products" : nullptr;
}

}  // namespace

constinit const AlgorithmFor<Problem> kDepthwise({.id = "conv.depthwise",
                                                  .description = "few channels in a group",
                                                  .style = DeviceStyle::Gpu},
                                                 Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::conv
