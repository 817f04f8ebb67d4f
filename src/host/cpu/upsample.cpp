// Upsampling of images. Both directions share the list of source positions and weights per axis.
#include <cmath>

#include "call.h"

namespace ocltensor::cpu {
namespace {

// An output position is low * (1 - weight) + high * weight.
struct Source {
  int64_t low, high;
  double weight;
};

// Positions are found in float32, as every backend does: in float64 others could be nearest.
std::vector<Source> nearest_axis(int64_t in, int64_t out, std::optional<double> scale) {
  const float step = scale && *scale > 0 ? static_cast<float>(1.0 / *scale)
                                         : static_cast<float>(in) / static_cast<float>(out);
  std::vector<Source> sources;
  for (int64_t o = 0; o < out; ++o) {
    int64_t at = static_cast<int64_t>(std::floor(static_cast<float>(o) * step));
    if (in == out) at = o;
    if (out == 2 * in) at = o / 2;
    at = std::min(at, in - 1);
    sources.push_back({at, at, 0});
  }
  return sources;
}

std::vector<Source> linear_axis(int64_t in, int64_t out, bool align_corners,
                                std::optional<double> scale) {
  double step =
      scale && *scale > 0 ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
  if (align_corners)
    step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  std::vector<Source> sources;
  for (int64_t o = 0; o < out; ++o) {
    const auto i = static_cast<double>(o);
    const double at = in == out       ? i
                      : align_corners ? step * i
                                      : std::max(0.0, step * (i + 0.5) - 0.5);
    const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
    const int64_t high = std::min(low + 1, in - 1);
    sources.push_back({low, high, std::min(1.0, std::max(0.0, at - static_cast<double>(low)))});
  }
  return sources;
}

struct Axes {
  std::vector<Source> y, x;
};

// `scales` is the position of scales_h; `corners` that of align_corners, 0 for nearest.
Axes axes(const CpuCall& call, std::span<const int64_t> in, std::span<const int64_t> out,
          size_t scales, size_t corners) {
  const auto axis = [&](size_t d) {
    const auto scale = call.args.optional_real(scales + d - 2);
    return corners == 0 ? nearest_axis(in[d], out[d], scale)
                        : linear_axis(in[d], out[d], call.args.boolean(corners), scale);
  };
  return {axis(2), axis(3)};
}

// Calls f(input position, output position, weight).
template <typename F>
void for_each_weight(const Axes& a, std::span<const int64_t> in, F&& f) {
  const auto emit = [&](int64_t y, int64_t x, size_t to, double weight) {
    if (weight != 0) f(static_cast<size_t>(y * in[3] + x), to, weight);
  };
  size_t to = 0;
  for (int64_t plane = 0; plane < in[0] * in[1]; ++plane)
    for (const Source& y : a.y)
      for (const Source& x : a.x) {
        const int64_t row = plane * in[2];
        emit(row + y.low, x.low, to, (1 - y.weight) * (1 - x.weight));
        emit(row + y.low, x.high, to, (1 - y.weight) * x.weight);
        emit(row + y.high, x.low, to, y.weight * (1 - x.weight));
        emit(row + y.high, x.high, to, y.weight * x.weight);
        ++to;
      }
}

void forward(const CpuCall& call, size_t scales, size_t corners) {
  const View self = call.args.tensor(0);
  const Axes a = axes(call, self.sizes, call.specs[0].sizes, scales, corners);
  const auto in = read<double>(self);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  for_each_weight(a, self.sizes,
                  [&](size_t from, size_t to, double weight) { result[to] += weight * in[from]; });
  if (is_integral(self.type, true))
    for (double& v : result) v = std::nearbyint(v);
  write(call.out(0), result);
}

void backward(const CpuCall& call, size_t scales, size_t corners) {
  const View gradient = call.args.tensor(0);
  const Dims& sizes = call.specs[0].sizes;
  const Axes a = axes(call, sizes, gradient.sizes, scales, corners);
  const auto g = read<double>(gradient);
  std::vector<double> result(static_cast<size_t>(numel(sizes)));
  for_each_weight(a, sizes,
                  [&](size_t to, size_t from, double weight) { result[to] += weight * g[from]; });
  write(call.out(0), result);
}

void nearest(const CpuCall& call) { forward(call, 2, 0); }
void nearest_backward(const CpuCall& call) { backward(call, 3, 0); }
void bilinear(const CpuCall& call) { forward(call, 3, 2); }
void bilinear_backward(const CpuCall& call) { backward(call, 4, 3); }

constexpr CpuOperator kOperators[] = {
    {"upsample_nearest2d.out", nearest},
    {"upsample_nearest2d_backward.grad_input", nearest_backward},
    {"upsample_bilinear2d.out", bilinear},
    {"upsample_bilinear2d_backward.grad_input", bilinear_backward},
};

}  // namespace

std::span<const CpuOperator> upsample_operators() { return kOperators; }

}  // namespace ocltensor::cpu
