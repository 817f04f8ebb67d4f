// Resampling of images, forward and backward, one dimension after the other: for each position of
// the result, a list of source positions and weights.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/infer/common.h"
#include "call.h"

namespace ocltensor::cpu {
namespace {

enum class Mode : uint8_t {
  Nearest,
  NearestExact,
  Linear,
  Cubic,
  LinearSmooth,
  CubicSmooth,
  LanczosSmooth
};

struct Tap {
  int64_t place;
  double weight;
};
using Axis = std::vector<std::vector<Tap>>;  // of each place of the large image

// Positions are computed in float32, as in every backend: float64 could select other neighbours.
Axis nearest_axis(int64_t in, int64_t out, std::optional<double> scale, bool exact) {
  const float step = scale && *scale > 0 ? static_cast<float>(1.0 / *scale)
                                         : static_cast<float>(in) / static_cast<float>(out);
  Axis axis;
  for (int64_t o = 0; o < out; ++o) {
    const float from = static_cast<float>(o) + (exact ? 0.5F : 0.0F);
    int64_t at = static_cast<int64_t>(std::floor(from * step));
    if (!exact && in == out) at = o;
    if (!exact && out == 2 * in) at = o / 2;
    axis.push_back({{std::min(at, in - 1), 1}});
  }
  return axis;
}

// Keys' cubic convolution.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

// Lanczos' window of three lobes: sinc(x) sinc(x / 3).
double lanczos(double x) {
  const double angle = std::numbers::pi * x;
  if (std::abs(x) >= 3) return 0;
  return x == 0 ? 1 : 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle);
}

struct Filter {
  double support;  // where the image does not shrink
  double (*weight)(double x);
};
Filter filter_of(Mode mode) {
  if (mode == Mode::LanczosSmooth) return {3, lanczos};
  if (mode == Mode::CubicSmooth) return {2, [](double x) { return cubic(x, -0.5); }};
  return {1, [](double x) { return std::max(0.0, 1 - std::abs(x)); }};
}

Axis smooth_axis(Mode mode, int64_t in, int64_t out, double step, bool align_corners) {
  Axis axis;
  for (int64_t o = 0; o < out; ++o) {
    const auto i = static_cast<double>(o);
    double at = align_corners ? step * i : step * (i + 0.5) - 0.5;
    if (mode == Mode::Linear) at = in == out ? i : std::max(0.0, at);
    const int64_t low = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
    const double t = std::clamp(at - static_cast<double>(low), 0.0, 1.0);
    auto& taps = axis.emplace_back();
    if (mode == Mode::Linear)
      taps = {{low, 1 - t}, {std::min(low + 1, in - 1), t}};
    else
      for (int64_t k = -1; k < 3; ++k)
        taps.push_back(
            {std::clamp<int64_t>(low + k, 0, in - 1), cubic(static_cast<double>(k) - t, -0.75)});
  }
  return axis;
}

// The filter is as wide as the step where the image shrinks.
Axis antialiased_axis(Mode mode, int64_t in, int64_t out, double step) {
  const double widening = std::max(step, 1.0);
  const Filter filter = filter_of(mode);
  const double support = filter.support * widening;
  Axis axis;
  for (int64_t o = 0; o < out; ++o) {
    const double center = step * (static_cast<double>(o) + 0.5);
    const auto first =
        std::max<int64_t>(static_cast<int64_t>(std::floor(center - support + 0.5)), 0);
    const auto end = std::min(static_cast<int64_t>(std::floor(center + support + 0.5)), in);
    auto& taps = axis.emplace_back();
    double total = 0;
    for (int64_t place = first; place < end; ++place) {
      const double x = (static_cast<double>(place) - center + 0.5) / widening;
      const double weight = filter.weight(x);
      taps.push_back({place, weight});
      total += weight;
    }
    if (total != 0)
      for (Tap& tap : taps) tap.weight /= total;
  }
  return axis;
}

Axis axis_of(Mode mode, int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  if (mode <= Mode::NearestExact) return nearest_axis(in, out, scale, mode != Mode::Nearest);
  double step =
      scale && *scale > 0 ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
  if (align_corners)
    step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  if (mode >= Mode::LinearSmooth) return antialiased_axis(mode, in, out, step);
  return smooth_axis(mode, in, out, step, align_corners);
}

// Resamples [outer, from, inner] to [outer, to, inner]. `gather` is the forward direction.
std::vector<double> resample(const std::vector<double>& x, const Axis& axis, int64_t outer,
                             int64_t from, int64_t to, int64_t inner, bool gather) {
  std::vector<double> result(static_cast<size_t>(outer * to * inner));
  for (int64_t row = 0; row < outer; ++row)
    for (size_t o = 0; o < axis.size(); ++o)
      for (const Tap& tap : axis[o]) {
        const auto large = static_cast<int64_t>(o);
        const int64_t target = gather ? large : tap.place, source = gather ? tap.place : large;
        for (int64_t i = 0; i < inner; ++i)
          result[static_cast<size_t>((row * to + target) * inner + i)] +=
              tap.weight * x[static_cast<size_t>((row * from + source) * inner + i)];
      }
  return result;
}

void run(const CpuCall& call, Mode mode, bool forward) {
  const View source = call.args.tensor(forward ? Arg::self : Arg::grad_output);
  const Dims& sizes = call.specs[0].sizes;
  auto x = read<double>(source);
  const bool linear = mode > Mode::NearestExact;
  const bool align_corners = linear && call.args.boolean(Arg::align_corners);
  Dims current = source.sizes;
  for (size_t d = 2; d < sizes.size(); ++d) {
    const int64_t from = current[d], to = sizes[d];
    const auto scale = infer::resampling_scale(call.args, sizes.size() - 1 - d);
    const Axis axis = axis_of(mode, forward ? from : to, forward ? to : from, align_corners, scale);
    const int64_t outer = numel(std::span(current.data(), d));
    x = resample(x, axis, outer, from, to,
                 numel(std::span(current.data(), current.size()).subspan(d + 1)), forward);
    current[d] = to;
  }
  if (linear && !is_floating(source.type))  // to bytes: cubic weights go below 0 and above 1
    for (double& v : x) v = std::nearbyint(std::clamp(v, 0.0, 255.0));
  write(call.out(0), x);
}

template <Mode mode>
void forward(const CpuCall& call) {
  run(call, mode, true);
}
template <Mode mode>
void backward(const CpuCall& call) {
  run(call, mode, false);
}

#define OCLTENSOR_UPSAMPLE(name, mode) \
  {name ".out", forward<Mode::mode>}, { name "_backward.grad_input", backward<Mode::mode> }
constexpr CpuOperator kOperators[] = {
    OCLTENSOR_UPSAMPLE("upsample_nearest1d", Nearest),
    OCLTENSOR_UPSAMPLE("upsample_nearest2d", Nearest),
    OCLTENSOR_UPSAMPLE("upsample_nearest3d", Nearest),
    OCLTENSOR_UPSAMPLE("_upsample_nearest_exact1d", NearestExact),
    OCLTENSOR_UPSAMPLE("_upsample_nearest_exact2d", NearestExact),
    OCLTENSOR_UPSAMPLE("_upsample_nearest_exact3d", NearestExact),
    OCLTENSOR_UPSAMPLE("upsample_linear1d", Linear),
    OCLTENSOR_UPSAMPLE("upsample_bilinear2d", Linear),
    OCLTENSOR_UPSAMPLE("upsample_trilinear3d", Linear),
    OCLTENSOR_UPSAMPLE("upsample_bicubic2d", Cubic),
    OCLTENSOR_UPSAMPLE("_upsample_bilinear2d_aa", LinearSmooth),
    OCLTENSOR_UPSAMPLE("_upsample_bicubic2d_aa", CubicSmooth),
    OCLTENSOR_UPSAMPLE("_upsample_lanczos2d_aa", LanczosSmooth),
};
#undef OCLTENSOR_UPSAMPLE

}  // namespace

std::span<const CpuOperator> upsample_operators() { return kOperators; }

}  // namespace ocltensor::cpu
