// Padded maps and parameters for the convolutions of CPU drivers.
#include "rows.h"

#include "kernels/conv.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kPadBlock = 16;    // channels that rows_pad.cl reads as one vector
constexpr int64_t kShortestRun = 4;  // weights; fewer are gathered one by one

// Finds how many weights of consecutive k = (input channel, tap) are contiguous in memory, in
// rising or in falling order.
void find_runs(ConvRowsParams& q) {
  const int64_t nest[][2] = {{q.taps_x, q.w_x}, {q.taps_y, q.w_y}, {q.inputs, q.w_input}};
  for (const bool falls : {false, true}) {
    int64_t length = 1;
    for (const auto& [size, stride] : nest) {
      if (size == 1) continue;
      if (stride != (falls ? -length : length)) break;
      length *= size;
    }
    if (length < kShortestRun || length <= q.w_run) continue;
    q.w_run = length;
    q.w_falls = falls;
  }
}

}  // namespace

PaddedMap pad_map(const OpCall& call, const Problem& p, const PadRequest& request) {
  const auto [is_big, y, x, overrun, spread_y, spread_x] = request;
  const ConvParams& g = p.params;
  const auto& strides = is_big ? g.big_strides : g.small_strides;
  const auto& map = is_big ? g.in : g.out;
  const int64_t channels = g.groups * (is_big ? g.big_channels : g.small_channels);
  const int64_t item = size_of(p.dtype);
  const bool inside = y.low >= 0 && x.low >= 0 && y.high < map[1] && x.high + overrun < map[2];
  if (inside && p.dtype == DType::Float32 && strides[4] == 1 && spread_y == 1 && spread_x == 1) {
    const Extent e =
        extent(Dims{g.batch, channels, map[0], map[1], map[2]}, std::span<const int64_t>(strides));
    return {
        {},        is_big ? p.big : p.small, e.low * item, e.high * item, 0, strides[0], strides[1],
        strides[3]};
  }
  const int64_t height = y.high - y.low + 1;
  const int64_t width = x.high - x.low + 1;
  PadParams pad{};
  pad.planes = g.batch * channels;
  pad.channels = channels;
  pad.height = map[1];
  pad.width = map[2];
  pad.image = strides[0];
  pad.channel = strides[1];
  pad.row = strides[3];
  pad.col = strides[4];
  pad.padded_height = height;
  pad.padded_width = width;
  pad.top = y.low;
  pad.left = x.low;
  pad.spread_y = spread_y;
  pad.spread_x = spread_x;
  pad.planes_per_item = std::max<int64_t>(1, divide_up(pad.planes, work_items(call)));
  pad.rows_per_item = height;
  if (strides[1] == 1 && channels >= kPadBlock) {  // channels_last: blocks of planes, parts of rows
    pad.planes_per_item = divide_up(pad.planes_per_item, kPadBlock) * kPadBlock;
    const int64_t parts = work_items(call) / divide_up(pad.planes, pad.planes_per_item);
    pad.rows_per_item = divide_up(height, std::clamp<int64_t>(parts, 1, height));
  }
  const int64_t bytes =
      (pad.planes * height * width + 64 + overrun) * static_cast<int64_t>(sizeof(float));
  PaddedMap result{};
  result.memory.push_back(call.scratch(static_cast<uint64_t>(bytes)));
  const tb_address start = result.memory[0].address();
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::SAME_TYPE, p.dtype == DType::Float32);
  call.launch(kernels::conv::rows_pad::pad, d,
              {.to = result.memory[0],
               .from = is_big ? memory_of_big(p) : memory_of_small(p),
               .p = pad})
      .run({divide_up(pad.planes, pad.planes_per_item), divide_up(height, pad.rows_per_item), 1},
           {1, 1, 1});
  result.address = start;
  result.low = 0;
  result.high = bytes;
  result.image = channels * height * width;
  result.channel = height * width;
  result.row = width;
  result.origin = -y.low * width - x.low;
  return result;
}

Reach reach(const Axis& a) {
  return {a.start, a.start + (a.outputs - 1) * a.stride + (a.taps - 1) * a.dilation};
}

void widen(Reach& reach, const Axis& a, int64_t piece) {
  if (a.outputs == 0 || a.taps == 0) return;
  const int64_t last = divide_up(a.outputs, piece) * piece - 1;
  reach.low = std::min(reach.low, a.start);
  reach.high = std::max(reach.high, a.start + last * a.stride + (a.taps - 1) * a.dilation);
}

void set_input(ConvRowsParams& q, const PaddedMap& map, const Axis& y, const Axis& x) {
  q.x_start = map.origin + y.start * map.row + x.start;
  q.x_image = map.image;
  q.x_group = q.inputs * map.channel;
  q.x_channel = map.channel;
  q.x_row = map.row;
  q.taps_y = y.taps;
  q.taps_x = x.taps;
  q.dilation_y = y.dilation;
  q.dilation_x = x.dilation;
  q.stride_y = y.stride;
  q.stride_x = x.stride;
  q.height = y.outputs;
  q.width = x.outputs;
}

void set_output(ConvRowsParams& q, const tk_i64 (&strides)[5]) {
  q.y_image = strides[0];
  q.y_group = q.outputs * strides[1];
  q.y_channel = strides[1];
  q.y_row = strides[3];
  q.y_col = strides[4];
}

ConvRowsParams gradient_params(const ConvParams& g, const PaddedMap& map, const Axis& y,
                               const Axis& x) {
  ConvRowsParams q{};
  q.images = g.batch;
  q.inputs = g.big_channels;
  q.outputs = g.small_channels;
  set_input(q, map, y, x);
  set_output(q, g.small_strides);
  q.w_group = q.outputs * g.weight_strides[0];
  q.w_output = g.weight_strides[0];
  q.w_input = g.weight_strides[1];
  q.w_y = g.weight_strides[3];
  q.w_x = g.weight_strides[4];
  return q;
}

ConvRowsParams rows_params(const Problem& p, const Phase& phase, const PaddedMap& map) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  const auto& out = forward ? g.small_strides : g.big_strides;
  ConvRowsParams q{};
  q.inputs = forward ? g.big_channels : g.small_channels;
  q.outputs = forward ? g.small_channels : g.big_channels;
  set_input(q, map, phase.y, phase.x);
  const bool empty = q.taps_y == 0 || q.taps_x == 0;
  if (empty) q.x_start = q.taps_y = q.taps_x = 0;
  set_output(q, out);
  q.y_start = phase.y.begin * out[3] + phase.x.begin * out[4];
  q.y_row *= phase.y.step;
  q.y_col *= phase.x.step;
  const auto& w = g.weight_strides;
  q.w_start = empty ? 0 : phase.y.first * w[3] + phase.x.first * w[4];
  q.w_group = g.small_channels * w[0];
  q.w_output = forward ? w[0] : w[1];
  q.w_input = forward ? w[1] : w[0];
  q.w_y = w[3] * phase.y.weight_step;
  q.w_x = w[4] * phase.x.weight_step;
  q.w_end = extent(Dims{g.groups * g.small_channels, g.big_channels, g.window[0], g.window[1],
                        g.window[2]},
                   std::span<const int64_t>(w))
                .high;
  find_runs(q);
  q.add_bias = p.bias.has_value();
  q.bias = g.bias_stride;
  q.images = g.batch;
  return q;
}

}  // namespace ocltensor::opencl::conv
