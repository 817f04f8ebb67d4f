// The axes of convolutions in both directions.
#include "phases.h"

#include <algorithm>
#include <numeric>

#include "call/divide_up.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::conv {

Axis forward_axis(const ConvParams& g, size_t d) {
  return {g.out[d], 0, 1, g.stride[d], g.window[d], 0, 1, -g.padding[d], g.dilation[d]};
}

// In a transposed convolution element i of the big map meets tap k at window position (i + padding
// - k * dilation) / stride where that is an integer, which holds for every `period`th tap. The last
// of them comes first, so that positions rise.
Axis transposed_axis(const ConvParams& g, size_t d, int64_t begin) {
  const int64_t stride = g.stride[d], dilation = g.dilation[d], at = begin + g.padding[d];
  const int64_t period = stride / std::gcd(stride, dilation);
  int64_t lowest = 0;
  while (lowest < period && (at - lowest * dilation) % stride != 0) ++lowest;
  const bool meets = lowest < std::min(period, g.window[d]);
  Axis a{};
  a.begin = begin;
  a.step = stride;
  a.outputs = begin >= g.in[d] ? 0 : divide_up(g.in[d] - begin, stride);
  a.stride = 1;
  a.dilation = period * dilation / stride;
  a.taps = meets ? divide_up(g.window[d] - lowest, period) : 0;
  if (!meets) return a;
  a.first = lowest + period * (a.taps - 1);
  a.weight_step = -period;
  a.start = (at - a.first * dilation) / stride;
  return a;
}

std::vector<Phase> phases_of(const Problem& p) {
  const ConvParams& g = p.params;
  if (p.direction == Direction::Forward) return {{forward_axis(g, 1), forward_axis(g, 2)}};
  std::vector<Phase> phases;
  for (int64_t y = 0; y < std::min(g.stride[1], g.in[1]); ++y)
    for (int64_t x = 0; x < std::min(g.stride[2], g.in[2]); ++x)
      phases.push_back({transposed_axis(g, 1, y), transposed_axis(g, 2, x)});
  return phases;
}

std::vector<Phase> phases_after_zeros(const OpCall& call, const Problem& p) {
  std::vector<Phase> phases = phases_of(p);
  const auto is_empty = [](const Phase& phase) { return phase.y.taps == 0 || phase.x.taps == 0; };
  if (p.bias || std::ranges::none_of(phases, is_empty)) return phases;
  const Roles roles(p);
  const tk_i64 *n = roles.target_sizes, *s = roles.target_strides;
  copy::fill_tensor(call,
                    LocalTensor(roles.target, p.dtype, Dims{p.params.batch, roles.m, n[1], n[2]},
                                Dims{s[0], s[1], s[3], s[4]}),
                    0);
  std::erase_if(phases, is_empty);
  return phases;
}

const char* refuse_phases(const Problem& p) {
  if (compute_type(p.dtype) != DType::Float32) return "not computed in float32";
  const ConvParams& g = p.params;
  if (g.in[0] != 1 || g.out[0] != 1 || g.window[0] != 1 || g.padding[0] != 0)
    return "three dimensions";
  return nullptr;
}

std::vector<std::vector<Phase>> launches_of(std::vector<Phase> phases) {
  std::ranges::stable_sort(phases, std::ranges::greater{},
                           [](const Phase& f) { return f.y.taps * f.x.taps; });
  std::erase_if(phases, [](const Phase& f) { return f.y.outputs * f.x.outputs == 0; });
  std::vector<std::vector<Phase>> launches;
  for (size_t at = 0; at < phases.size(); at += CONV_PHASES) {
    const auto begin = phases.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = std::min<std::ptrdiff_t>(CONV_PHASES, phases.end() - begin);
    launches.emplace_back(begin, begin + count);
  }
  return launches;
}

int64_t most_pixels(std::span<const ConvPhase> phases) {
  return std::ranges::max_element(phases, {}, &ConvPhase::pixels)->pixels;
}

ConvImplicitParams product_of(const Problem& p, std::span<const Phase> phases) {
  const auto& [y, x] = phases.front();  // what differs is in k.phases
  const Roles roles(p);
  const tk_i64 *from = roles.source_strides, *to = roles.target_strides;
  const int64_t width = p.params.window[2];
  ConvImplicitParams k{};
  for (size_t i = 0; i < phases.size(); ++i) {
    const Axis &row = phases[i].y, &column = phases[i].x;
    k.phases[i] = {.pixels = p.params.batch * row.outputs * column.outputs,
                   .map_pixels = row.outputs * column.outputs,
                   .row_pixels = column.outputs,
                   .first = {row.start, column.start},
                   .taps = {row.taps, column.taps},
                   .weight_first = row.first * width + column.first,
                   .target = row.begin * to[3] + column.begin * to[4]};
  }
  k.m = roles.m;
  k.channels = roles.channels;
  k.rows = roles.source_sizes[1];
  k.columns = roles.source_sizes[2];
  k.source_image = from[0];
  k.source_channel = from[1];
  k.source_row = from[3];
  k.source_column = from[4];
  k.target_image = to[0];
  k.target_channel = to[1];
  k.target_row = to[3] * y.step;
  k.target_column = to[4] * x.step;
  k.pixel_step[0] = y.stride;
  k.pixel_step[1] = x.stride;
  k.tap_step[0] = y.dilation;
  k.tap_step[1] = x.dilation;
  k.weight_step[0] = y.weight_step * width;
  k.weight_step[1] = x.weight_step;
  k.bias_stride = p.params.bias_stride;
  return k;
}

const char* refuse_gathering(const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  if (p.direction == Direction::Weight) return "a gradient of weights";
  const ConvParams& g = p.params;
  const Roles roles(p);
  if (g.groups != 1) return "several groups";
  const auto reach = [](const tk_i64* sizes, const tk_i64* strides) {
    return extent(Dims{sizes[1], sizes[2]}, Dims{strides[3], strides[4]});
  };
  const Extent e = reach(roles.source_sizes, roles.source_strides);
  const int64_t pixels = g.batch * roles.target_sizes[1] * roles.target_sizes[2];
  if (e.low < 0 || e.high > INT32_MAX / 2 || pixels > INT32_MAX / 2)
    return "the sizes need 64 bits";
  return nullptr;
}

}  // namespace ocltensor::opencl::conv
