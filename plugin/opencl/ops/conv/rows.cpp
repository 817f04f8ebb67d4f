// Padded maps and axes for the convolutions of CPU drivers.
#include "rows.h"

#include "kernels/conv.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kPadBlock = 16;  // channels that rows_pad.cl reads as one vector

}  // namespace

Axis forward_axis(const ConvParams& g, size_t d) {
  return {g.out[d], 0, 1, g.stride[d], g.window[d], 0, 1, -g.padding[d], g.dilation[d]};
}

// In a transposed convolution element i of the big map meets tap k at window position (i + padding
// - k * dilation) / stride, where that is an integer.
Axis transposed_axis(const ConvParams& g, size_t d, int64_t begin) {
  const int64_t stride = g.stride[d];
  Axis a{};
  a.begin = begin;
  a.step = stride;
  a.outputs = begin >= g.in[d] ? 0 : divide_up(g.in[d] - begin, stride);
  a.stride = 1;
  if (stride == 1) {
    a.taps = g.window[d];
    a.first = a.taps - 1;
    a.weight_step = -1;
    a.dilation = g.dilation[d];
    a.start = g.padding[d] - (a.taps - 1) * a.dilation;
    return a;
  }
  const int64_t lowest = (begin + g.padding[d]) % stride;
  a.taps = lowest < g.window[d] ? divide_up(g.window[d] - lowest, stride) : 0;
  a.first = lowest + stride * (a.taps - 1);
  a.weight_step = -stride;
  a.dilation = 1;
  a.start = (begin + g.padding[d] - lowest) / stride - (a.taps - 1);
  return a;
}

const char* refuse_rows(const Problem& p) {
  if (compute_type(p.dtype) != DType::Float32) return "not computed in float32";
  const ConvParams& g = p.params;
  if (g.in[0] != 1 || g.out[0] != 1 || g.window[0] != 1 || g.padding[0] != 0)
    return "three dimensions";
  return nullptr;
}

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

}  // namespace ocltensor::opencl::conv
