// Sampling images and volumes at the points of a grid, and the gradients: each point has a
// list of taps, which forward and backward share.
#include <cmath>

#include "call.h"

namespace ocltensor::cpu {
namespace {

enum Mode { Linear, Nearest, Cubic };
enum Padding { Zeros, Border, Reflection };

struct AxisTap {
  int64_t place;  // -1: outside
  double weight, slope;
};

struct Tap {
  int64_t place;
  double weight;
  double slopes[3];  // the weight's derivatives by the coordinates, innermost first
};

class Sampler {
 public:
  explicit Sampler(const CpuCall& call)
      : input(call.args.tensor(Arg::input)),
        dims(input.ndim() - 2),
        batch(input.sizes[0]),
        channels(input.sizes[1]),
        elements(numel(std::span<const int64_t>(input.sizes).subspan(2))),
        mode_(static_cast<Mode>(call.args.integer(Arg::interpolation_mode))),
        padding_(static_cast<Padding>(call.args.integer(Arg::padding_mode))),
        align_(call.args.boolean(Arg::align_corners)),
        grid_(read<double>(call.args.tensor(Arg::grid))) {
    points = batch == 0 ? 0 : static_cast<int64_t>(grid_.size()) / (batch * dims);
  }

  // Of point `at` of image n.
  std::vector<Tap> taps(int64_t n, int64_t at) const {
    std::vector<Tap> taps{{0, 1, {1, 1, 1}}};
    int64_t step = 1;
    for (int64_t d = 0; d < dims; ++d) {
      const int64_t size = input.sizes[input.sizes.size() - 1 - static_cast<size_t>(d)];
      const auto axis = axis_taps(grid_[static_cast<size_t>((n * points + at) * dims + d)], size);
      std::vector<Tap> next;
      for (const AxisTap& a : axis)
        for (const Tap& t : taps) {
          Tap tap{
              t.place < 0 || a.place < 0 ? -1 : t.place + a.place * step, t.weight * a.weight, {}};
          for (int64_t e = 0; e < dims; ++e)
            tap.slopes[e] = t.slopes[e] * (e == d ? a.slope : a.weight);
          next.push_back(tap);
        }
      taps = std::move(next);
      step *= size;
    }
    std::erase_if(taps, [](const Tap& t) { return t.place < 0; });
    return taps;
  }

  View input;
  int64_t dims, batch, channels, elements, points = 0;

 private:
  double padded(double at, int64_t size, double& slope) const {
    const auto last = static_cast<double>(size - 1);
    if (padding_ == Zeros) return at;
    if (padding_ == Reflection) {
      const double low = align_ ? 0 : -0.5, span = align_ ? last : last + 1;
      if (span == 0) {
        slope = 0;
        return 0;
      }
      const double distance = std::abs(at - low), rest = std::fmod(distance, span);
      const bool turned = std::fmod(std::floor(distance / span), 2) != 0;
      if ((at < low) != turned) slope = -slope;
      at = low + (turned ? span - rest : rest);
    }
    if (at <= 0 || at >= last) slope = 0;
    return std::min(std::max(at, 0.0), last);
  }

  std::vector<AxisTap> axis_taps(double x, int64_t size) const {
    const auto place = [&](double whole) {
      return whole >= 0 && whole <= static_cast<double>(size - 1) ? static_cast<int64_t>(whole)
                                                                  : -1;
    };
    const auto n = static_cast<double>(size);
    double slope = align_ ? (n - 1) / 2 : n / 2;
    double at = align_ ? (x + 1) * slope : ((x + 1) * n - 1) / 2;
    if (std::isnan(at) || (padding_ == Reflection && std::isinf(at))) {
      at = padding_ == Zeros ? -8 : 0;
      slope = 0;
    }
    if (padding_ != Reflection) at = std::min(std::max(at, -8.0), n + 8);
    if (mode_ != Cubic) at = padded(at, size, slope);
    if (mode_ == Nearest) return {{place(std::nearbyint(at)), 1, 0}};
    const double low = std::floor(at), t = at - low;
    if (mode_ == Linear) return {{place(low), 1 - t, -slope}, {place(low + 1), t, slope}};
    // Keys' cubic convolution with a = -0.75: within one element, and within two.
    constexpr double a = -0.75;
    std::vector<AxisTap> taps;
    for (int k = -1; k < 3; ++k) {
      const double distance = std::abs(t - k), side = t < k ? -slope : slope;
      const bool near = k == 0 || k == 1;
      const double s = distance;
      const double weight =
          near ? ((a + 2) * s - (a + 3)) * s * s + 1 : ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
      const double rise =
          near ? (3 * (a + 2) * s - 2 * (a + 3)) * s : (3 * a * s - 10 * a) * s + 8 * a;
      double ignored = 1;
      taps.push_back({place(std::trunc(padded(low + k, size, ignored))), weight, rise * side});
    }
    return taps;
  }

  Mode mode_;
  Padding padding_;
  bool align_;
  std::vector<double> grid_;
};

// Calls f(point's place in rows of points, its taps, n).
template <typename F>
void for_each_point(const Sampler& s, F&& f) {
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t at = 0; at < s.points; ++at) f(n, at, s.taps(n, at));
}

void forward(const CpuCall& call) {
  const Sampler s(call);
  const auto image = read<double>(s.input);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  for_each_point(s, [&](int64_t n, int64_t at, const std::vector<Tap>& taps) {
    for (int64_t row = n * s.channels; row < (n + 1) * s.channels; ++row)
      for (const Tap& t : taps)
        result[static_cast<size_t>(row * s.points + at)] +=
            t.weight * image[static_cast<size_t>(row * s.elements + t.place)];
  });
  write(call.out(0), result);
}

void backward(const CpuCall& call) {
  const Sampler s(call);
  const auto image = read<double>(s.input),
             gradient = read<double>(call.args.tensor(Arg::grad_output));
  std::vector<double> of_image(image.size());
  std::vector<double> of_grid(static_cast<size_t>(s.batch * s.points * s.dims));
  for_each_point(s, [&](int64_t n, int64_t at, const std::vector<Tap>& taps) {
    for (int64_t row = n * s.channels; row < (n + 1) * s.channels; ++row)
      for (const Tap& t : taps) {
        const double g = gradient[static_cast<size_t>(row * s.points + at)];
        const auto place = static_cast<size_t>(row * s.elements + t.place);
        of_image[place] += t.weight * g;
        for (int64_t d = 0; d < s.dims; ++d)
          of_grid[static_cast<size_t>((n * s.points + at) * s.dims + d)] +=
              t.slopes[d] * image[place] * g;
      }
  });
  if (call.wants(0)) write(call.out(0), of_image);
  if (call.wants(1)) write(call.out(1), of_grid);
}

constexpr CpuOperator kOperators[] = {
    {"grid_sampler_2d.out", forward},
    {"grid_sampler_2d_backward.out", backward},
    {"grid_sampler_3d.out", forward},
    {"grid_sampler_3d_backward.out", backward},
};

}  // namespace

std::span<const CpuOperator> sampling_operators() { return kOperators; }

}  // namespace ocltensor::cpu
