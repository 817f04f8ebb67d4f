// Convolutions with few channels in a group (depthwise) for CPU drivers, all three directions.
#include "kernels/conv.h"
#include "rows.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kFewChannels = 8;  // in a group; above, register tiles of 32 channels are faster
constexpr int64_t kVector = 16;
constexpr int64_t kWidestWindow = 7;  // columns that are written out

const char* refuse(const OpCall&, const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  const ConvParams& g = p.params;
  if (g.groups == 1) return "one group";
  if (std::max(g.big_channels, g.small_channels) > kFewChannels) return "many channels in a group";
  if (p.direction == Direction::Weight && g.batch * g.out[1] * g.out[2] == 0)
    return "nothing to sum";
  return nullptr;
}

// How many elements past a row's last output the vectors read.
int64_t overrun(const Axis& x) {
  return (divide_up(x.outputs, kVector) * kVector - x.outputs) * x.stride + x.stride;
}
// The axis of a transposed convolution as that of a plain one over a map with zeros between its
// elements.
Axis spread_axis(const ConvParams& g, size_t d) {
  const int64_t reach = (g.window[d] - 1) * g.dilation[d];
  return {g.in[d], 0, 1, 1, g.window[d], g.window[d] - 1, -1, g.padding[d] - reach, g.dilation[d]};
}

Defines defines(const Problem& p, const ConvRowsParams& q) {
  Defines d;
  d.type(define::TYPE, p.dtype).set(define::STRIDE, q.stride_x <= 2 ? q.stride_x : 0);
  const bool square = q.taps_y == q.taps_x;
  d.set(define::TAPS, square && (q.taps_x == 3 || q.taps_x == 5) ? q.taps_x : 0);
  return d;
}

void run_weight(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const Axis y = forward_axis(g, 1);
  const Axis x = forward_axis(g, 2);
  const PaddedMap map =
      pad_map(call, p, {.is_big = true, .y = reach(y), .x = reach(x), .overrun = overrun(x)});
  ConvRowsParams q = gradient_params(g, map, y, x);
  const int64_t pairs = g.groups * q.outputs * q.inputs;
  q.per_item = divide_up(pairs, work_items(call));
  call.launch(
          kernels::conv::grouped_weight::grouped_weight, defines(p, q),
          {.w = memory_of_weight(p), .x = map, .y = memory_of_small(p), .p = q, .groups = g.groups})
      .run({divide_up(pairs, q.per_item), 1, 1}, {1, 1, 1});
}

// Data with a stride of 2 along the rows, which grouped_data.cl has without zeros between.
bool is_doubled(const Problem& p) {
  const ConvParams& g = p.params;
  return p.direction == Direction::Data && g.stride[2] == 2 && g.dilation[1] == 1 &&
         g.dilation[2] == 1 && g.window[2] <= kWidestWindow;
}

void run_doubled(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  // Column 2 * i + r meets tap k at column i + (r + padding - k) / 2 of the small map.
  const auto shift = [&](int64_t k) { return (((k + g.padding[2]) & 1) + g.padding[2] - k) / 2; };
  const int64_t pairs = divide_up(divide_up(g.in[2], 2), kVector) * kVector;
  const PaddedMap map = pad_map(call, p,
                                {.is_big = false,
                                 .y = {0, std::max<int64_t>(0, g.out[1] - 1)},
                                 .x = {shift(g.window[2] - 1), pairs - 1 + shift(0)}});
  const int64_t planes = g.batch * g.groups * g.big_channels;
  const int64_t per_item = divide_up(planes, 4 * work_items(call));
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::WINDOW, g.window[2])
      .set(define::ODD, g.padding[2] & 1)
      .set(define::ADD_SELF, p.bias.has_value());
  call.launch(kernels::conv::grouped_data::grouped_data, d,
              {.y = memory_of_big(p),
               .x = map,
               .w = memory_of_weight(p),
               .bias = memory_of_bias(p),
               .p = g,
               .x_start = map.origin,
               .x_image = map.image,
               .x_channel = map.channel,
               .x_row = map.row,
               .per_item = per_item})
      .run({divide_up(planes, per_item), 1, 1}, {1, 1, 1});
}

void run(const OpCall& call, const Problem& p) {
  if (p.direction == Direction::Weight) return run_weight(call, p);
  if (is_doubled(p)) return run_doubled(call, p);
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  const Axis y = forward ? forward_axis(g, 1) : spread_axis(g, 1);
  const Axis x = forward ? forward_axis(g, 2) : spread_axis(g, 2);
  const PaddedMap map = pad_map(call, p,
                                {.is_big = forward,
                                 .y = reach(y),
                                 .x = reach(x),
                                 .overrun = overrun(x),
                                 .spread_y = forward ? 1 : g.stride[1],
                                 .spread_x = forward ? 1 : g.stride[2]});
  const auto& w = g.weight_strides;
  ConvRowsParams q{};
  q.images = g.batch;
  q.inputs = forward ? g.big_channels : g.small_channels;
  q.outputs = forward ? g.small_channels : g.big_channels;
  set_input(q, map, y, x);
  set_output(q, forward ? g.small_strides : g.big_strides);
  q.w_start = y.first * w[3] + x.first * w[4];
  q.w_group = g.small_channels * w[0];
  q.w_output = forward ? w[0] : w[1];
  q.w_input = forward ? w[1] : w[0];
  q.w_y = w[3] * y.weight_step;
  q.w_x = w[4] * x.weight_step;
  q.bias = g.bias_stride;
  const int64_t planes = g.batch * g.groups;
  q.per_item = divide_up(planes, 4 * work_items(call));
  Defines d = defines(p, q);
  d.set(define::OUTPUTS, q.outputs >= 3 ? 4 : 1).set(define::ADD_SELF, p.bias.has_value());
  call.launch(kernels::conv::grouped::conv_grouped, d,
              {.y = forward ? memory_of_small(p) : memory_of_big(p),
               .x = map,
               .w = memory_of_weight(p),
               .bias = memory_of_bias(p),
               .p = q,
               .groups = g.groups})
      .run({divide_up(planes, q.per_item), 1, 1}, {1, 1, 1});
}

}  // namespace

constinit const AlgorithmFor<Problem> kGrouped({.id = "conv.grouped",
                                                .description = "rows of a group",
                                                .style = DeviceStyle::Cpu},
                                               Steps<refuse, run>());

}  // namespace ocltensor::opencl::conv
