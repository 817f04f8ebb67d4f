// Direct convolution for CPU drivers, forward and data. The data direction is forward over flipped
// weights, one launch for every remainder of its position by the stride, so that no zero is
// multiplied.
#include "kernel_sources.h"
#include "rows.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kSegment = 7;  // direct.cl
constexpr int64_t kBlock = 32;   // output channels of a block, direct.cl

const char* refuse(const OpCall& call, const ConvProblem& p) {
  if (const char* reason = refuse_rows(call, p)) return reason;
  const ConvParams& g = p.params;
  if (p.direction == ConvDirection::Weight) return "the gradient of weights";
  if (p.direction == ConvDirection::Data)
    for (size_t d = 1; d < 3; ++d)
      if (g.stride[d] > 1 && g.dilation[d] > 1) return "transposed with stride and dilation";
  return nullptr;
}

void widen(Reach& reach, const Axis& a, int64_t piece) {
  if (a.outputs == 0 || a.taps == 0) return;
  const int64_t last = divide_up(a.outputs, piece) * piece - 1;
  reach.low = std::min(reach.low, a.start);
  reach.high = std::max(reach.high, a.start + last * a.stride + (a.taps - 1) * a.dilation);
}

struct Part {
  Axis y, x;
};

std::vector<Part> parts_of(const ConvProblem& p) {
  const ConvParams& g = p.params;
  if (p.direction == ConvDirection::Forward) return {{forward_axis(g, 1), forward_axis(g, 2)}};
  std::vector<Part> parts;
  for (int64_t y = 0; y < std::min(g.stride[1], g.in[1]); ++y)
    for (int64_t x = 0; x < std::min(g.stride[2], g.in[2]); ++x)
      parts.push_back({transposed_axis(g, 1, y), transposed_axis(g, 2, x)});
  return parts;
}

// Packs the weights of one part; the scratch memory that holds them.
Scratch pack_weights(const OpCall& call, const ConvProblem& p, const Part& part, int64_t blocks) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == ConvDirection::Forward;
  const auto& w = g.weight_strides;
  PackWeightsParams q{};
  q.outputs = forward ? g.small_channels : g.big_channels;
  q.inputs = forward ? g.big_channels : g.small_channels;
  q.taps_y = part.x.taps == 0 ? 0 : part.y.taps;
  q.taps_x = part.y.taps == 0 ? 0 : part.x.taps;
  q.group = g.small_channels * w[0];
  q.output = forward ? w[0] : w[1];
  q.input = forward ? w[1] : w[0];
  q.y = w[3] * part.y.weight_step;
  q.x = w[4] * part.x.weight_step;
  q.bias = g.bias_stride;
  q.bias_group = q.outputs * g.bias_stride;
  q.add_bias = p.bias.has_value();
  const int64_t taps = q.taps_y * q.taps_x;
  q.inputs_per_item = std::max<int64_t>(1, 256 / std::max<int64_t>(1, taps));
  const int64_t bytes =
      g.groups * blocks * (1 + q.inputs * taps) * kBlock * static_cast<int64_t>(sizeof(float));
  Scratch memory = call.scratch(static_cast<uint64_t>(bytes));
  Defines d;
  d.type("TYPE", p.dtype);
  Launch launch = call.launch(kernel_sources::conv_pack_weights, "pack_weights", d);
  launch.memory(memory.address(), 0, bytes);
  bind_weight(launch, p);
  bind_bias(launch, p);
  q.start = taps == 0 ? 0 : part.y.first * w[3] + part.x.first * w[4];
  launch.bytes(&q, sizeof q)
      .run({static_cast<size_t>(blocks),
            static_cast<size_t>(std::max<int64_t>(1, divide_up(q.inputs, q.inputs_per_item))),
            static_cast<size_t>(g.groups)},
           {1, 1, 1});
  return memory;
}

void run_part(const OpCall& call, const ConvProblem& p, const Part& part, const PaddedMap& map) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == ConvDirection::Forward;
  const auto& out = forward ? g.small_strides : g.big_strides;
  ConvRowsParams q{};
  q.inputs = forward ? g.big_channels : g.small_channels;
  q.outputs = forward ? g.small_channels : g.big_channels;
  q.taps_y = part.x.taps == 0 ? 0 : part.y.taps;
  q.taps_x = part.y.taps == 0 ? 0 : part.x.taps;
  const bool empty = q.taps_y == 0 || q.taps_x == 0;
  q.x_start = empty ? 0 : map.origin + part.y.start * map.row + part.x.start;
  q.x_image = map.image;
  q.x_group = q.inputs * map.channel;
  q.x_channel = map.channel;
  q.x_row = map.row;
  q.y_start = part.y.begin * out[3] + part.x.begin * out[4];
  q.y_image = out[0];
  q.y_group = q.outputs * out[1];
  q.y_channel = out[1];
  q.y_row = out[3] * part.y.step;
  q.y_col = out[4] * part.x.step;
  q.dilation_y = part.y.dilation;
  q.dilation_x = part.x.dilation;
  q.stride_y = part.y.stride;
  q.stride_x = part.x.stride;
  q.height = part.y.outputs;
  q.width = part.x.outputs;
  q.images = g.batch;
  q.segments = g.batch * q.height * divide_up(q.width, kSegment);
  q.blocks = divide_up(q.outputs, kBlock);
  const int64_t pairs = divide_up(q.segments, 2);
  q.per_item = std::clamp<int64_t>(divide_up(pairs * q.blocks * g.groups, work_items(call)), 1, 64);
  // The smaller operand is swept in the inner order, so that it stays in the cache.
  q.channels_inner = g.batch * map.image > q.outputs * q.inputs * g.groups * q.taps_y * q.taps_x;

  const Scratch weights = pack_weights(call, p, part, q.blocks);
  Defines d;
  d.type("TYPE", p.dtype);
  Launch launch = call.launch(kernel_sources::conv_direct, "conv_direct", d);
  forward ? bind_small(launch, p) : bind_big(launch, p);
  map.bind(launch);
  launch.memory(weights.address(), 0, static_cast<int64_t>(weights.bytes()));
  launch.bytes(&q, sizeof q);
  const auto chunks = static_cast<size_t>(divide_up(pairs, q.per_item));
  const auto blocks = static_cast<size_t>(q.blocks);
  const auto groups = static_cast<size_t>(g.groups);
  q.channels_inner ? launch.run({blocks, chunks, groups}, {1, 1, 1})
                   : launch.run({chunks, blocks, groups}, {1, 1, 1});
}

void run(const OpCall& call, const ConvProblem& p) {
  const std::vector<Part> parts = parts_of(p);
  Reach y{INT64_MAX, INT64_MIN};
  Reach x = y;
  for (const Part& part : parts) {
    widen(y, part.y, 1);
    widen(x, part.x, kSegment);
  }
  if (y.low > y.high || x.low > x.high) y = x = {0, 0};  // no part has a tap
  const PaddedMap map =
      pad_map(call, p, {.is_big = p.direction == ConvDirection::Forward, .y = y, .x = x});
  for (const Part& part : parts)
    if (part.y.outputs > 0 && part.x.outputs > 0) run_part(call, p, part, map);
}

}  // namespace

const ConvImplementation kConvDirect{"direct tiles", refuse, run};

}  // namespace ocltensor::opencl
