// torchvision's operators on boxes and regions of images.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "call.h"

namespace ocltensor::cpu {
namespace {

struct Box {
  double x1, y1, x2, y2;
  double area() const { return (x2 - x1) * (y2 - y1); }
};

double overlap(const Box& a, const Box& b) {
  const double w = std::max(0.0, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const double h = std::max(0.0, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  return w * h / (a.area() + b.area() - w * h);
}

// Of boxes that overlap by more than the threshold, the ones of highest score are kept. NaN is the
// highest score, as in sort.
void nms(const CpuCall& call) {
  const auto numbers = read<double>(call.args.tensor(Arg::dets));
  const auto scores = read<double>(call.args.tensor(Arg::scores));
  const double threshold = call.args.real(Arg::iou_threshold);
  const auto box = [&](int64_t i) {
    const double* b = numbers.data() + i * 4;
    return Box{b[0], b[1], b[2], b[3]};
  };
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    const double x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return std::isnan(x) ? !std::isnan(y) : x > y;
  });
  std::vector<int64_t> kept;
  for (const int64_t i : order)
    if (std::ranges::none_of(kept, [&](int64_t k) { return overlap(box(k), box(i)) > threshold; }))
      kept.push_back(i);
  write(call.resized(0, Dims{static_cast<int64_t>(kept.size())}), kept);
}

// ---- pooling of regions

// Pooling of regions of images, [batch, channels, height, width], in bins: what a bin reads.
class Pooling {
 public:
  // `sampled`: bins have samples. `own`: each bin has channels of its own.
  Pooling(const CpuCall& call, bool sampled, bool own, std::span<const int64_t> images)
      : batch(images[0]),
        channels(images[1]),
        sizes{images[2], images[3]},
        pooled{call.args.integer(Arg::pooled_height), call.args.integer(Arg::pooled_width)},
        own(own),
        rois_(read<double>(call.args.tensor(Arg::rois))),
        scale_(call.args.real(Arg::spatial_scale)),
        samples_(sampled ? call.args.integer(Arg::sampling_ratio) : 0),
        aligned_(own || (sampled && call.args.boolean(Arg::aligned))) {}

  int64_t regions() const { return static_cast<int64_t>(rois_.size() / 5); }
  int64_t bins() const { return pooled[0] * pooled[1]; }
  int64_t image(int64_t r) const { return static_cast<int64_t>(roi(r)[0]); }
  // Where bin `bin` of region r has its result of a channel of the image.
  size_t place(int64_t r, int64_t channel, int64_t bin) const {
    return static_cast<size_t>(own ? r * channels + channel
                                   : (r * channels + channel) * bins() + bin);
  }
  size_t element(int64_t image, int64_t channel, int64_t y, int64_t x) const {
    return static_cast<size_t>(((image * channels + channel) * sizes[0] + y) * sizes[1] + x);
  }
  // Calls f(region, bin, channel) for each result.
  template <typename F>
  void for_each_result(F&& f) const {
    for (int64_t r = 0; r < regions(); ++r) {
      check(image(r) >= 0 && image(r) < batch, "index {} is out of range: there are {} images",
            image(r), batch);
      for (int64_t bin = 0; bin < bins(); ++bin)
        for (int64_t c = own ? bin : 0; c < channels; c += own ? bins() : 1) f(r, bin, c);
    }
  }

  // Calls f(y, x, weight) for the elements that the samples of a bin read.
  template <typename F>
  void for_each_tap(int64_t r, int64_t bin, F&& f) const {
    const auto ys = samples(r, 0, bin / pooled[1]), xs = samples(r, 1, bin % pooled[1]);
    const auto count = static_cast<double>(ys.count * xs.count);
    for (const Tap& y : ys.taps)
      for (const Tap& x : xs.taps)
        f(y.place, x.place, y.weight * x.weight / (own ? count : std::max(count, 1.0)));
  }
  bool is_unsampled(int64_t r, int64_t bin) const {
    return samples(r, 0, bin / pooled[1]).count * samples(r, 1, bin % pooled[1]).count == 0;
  }

  struct Range {
    int64_t low, high;
    int64_t size() const { return std::max<int64_t>(high - low, 0); }
  };
  // The whole elements of a bin, within `limit`.
  Range elements(int64_t r, int d, int64_t bin, int64_t limit) const {
    const auto start = static_cast<int64_t>(std::round(roi(r)[2 - d] * scale_));
    const auto end = static_cast<int64_t>(std::round(roi(r)[4 - d] * scale_));
    const auto size = static_cast<double>(std::max<int64_t>(end - start + (own ? 0 : 1), 1));
    const double each = size / static_cast<double>(pooled[d]);
    const auto k = static_cast<double>(bin);
    return {std::clamp<int64_t>(static_cast<int64_t>(std::floor(k * each)) + start, 0, limit),
            std::clamp<int64_t>(static_cast<int64_t>(std::ceil((k + 1) * each)) + start, 0, limit)};
  }

  int64_t batch, channels, sizes[2], pooled[2];
  bool own;

 private:
  struct Tap {
    int64_t place;
    double weight;
  };
  struct Samples {
    int64_t count;
    std::vector<Tap> taps;
  };
  const double* roi(int64_t r) const { return rois_.data() + r * 5; }

  Samples samples(int64_t r, int d, int64_t bin) const {
    const double offset = aligned_ ? 0.5 : 0;
    const double start = roi(r)[2 - d] * scale_ - offset, end = roi(r)[4 - d] * scale_ - offset;
    const double size = aligned_ ? end - start : std::max(end - start, 1.0);
    const double each = size / static_cast<double>(pooled[d]);
    Samples all{samples_ > 0 ? samples_ : static_cast<int64_t>(std::ceil(each)), {}};
    const auto last = static_cast<double>(sizes[d] - 1);
    for (int64_t i = 0; i < all.count; ++i) {
      const double within = (static_cast<double>(i) + 0.5) / static_cast<double>(all.count);
      const double at = start + (static_cast<double>(bin) + within) * each;
      if (at < -1 || at > last + 1) continue;
      const double inside = std::clamp(at, 0.0, last), low = std::floor(inside);
      all.taps.push_back({static_cast<int64_t>(low), 1 - (inside - low)});
      if (inside > low) all.taps.push_back({static_cast<int64_t>(low) + 1, inside - low});
    }
    return all;
  }

  std::vector<double> rois_;
  double scale_;
  int64_t samples_;
  bool aligned_;
};

void write_channels(const CpuCall& call, const Pooling& pooling) {
  std::vector<int64_t> channels(static_cast<size_t>(numel(call.specs[1].sizes)));
  pooling.for_each_result(
      [&](int64_t r, int64_t bin, int64_t c) { channels[pooling.place(r, c, bin)] = c; });
  if (call.wants(1)) write(call.out(1), channels);
}

template <bool own>
void roi_align(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const Pooling pooling(call, true, own, input.sizes);
  const auto image = read<double>(input);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  pooling.for_each_result([&](int64_t r, int64_t bin, int64_t c) {
    double sum = own && pooling.is_unsampled(r, bin) ? std::nan("") : 0;
    pooling.for_each_tap(r, bin, [&](int64_t y, int64_t x, double weight) {
      sum += weight * image[pooling.element(pooling.image(r), c, y, x)];
    });
    result[pooling.place(r, c, bin)] = sum;
  });
  if (call.wants(0)) write(call.out(0), result);
  if (own) write_channels(call, pooling);
}

template <bool own>
void roi_align_backward(const CpuCall& call) {
  const Pooling pooling(call, true, own, call.specs[0].sizes);
  const auto grad = read<double>(call.args.tensor(Arg::grad));
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  pooling.for_each_result([&](int64_t r, int64_t bin, int64_t c) {
    pooling.for_each_tap(r, bin, [&](int64_t y, int64_t x, double weight) {
      result[pooling.element(pooling.image(r), c, y, x)] += weight * grad[pooling.place(r, c, bin)];
    });
  });
  if (call.wants(0)) write(call.out(0), result);
}

void roi_pool(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const Pooling pooling(call, false, false, input.sizes);
  const auto image = read<double>(input);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  std::vector<int64_t> places(result.size());
  pooling.for_each_result([&](int64_t r, int64_t bin, int64_t c) {
    const auto y = pooling.elements(r, 0, bin / pooling.pooled[1], pooling.sizes[0]);
    const auto x = pooling.elements(r, 1, bin % pooling.pooled[1], pooling.sizes[1]);
    double largest = y.size() * x.size() == 0 ? 0.0 : -std::numeric_limits<float>::max();
    int64_t place = -1;
    for (int64_t j = y.low; j < y.high; ++j)
      for (int64_t k = x.low; k < x.high; ++k)
        if (const double v = image[pooling.element(pooling.image(r), c, j, k)]; v > largest) {
          largest = v;
          place = j * pooling.sizes[1] + k;
        }
    result[pooling.place(r, c, bin)] = largest;
    places[pooling.place(r, c, bin)] = place;
  });
  if (call.wants(0)) write(call.out(0), result);
  if (call.wants(1)) write(call.out(1), places);
}

void roi_pool_backward(const CpuCall& call) {
  const Pooling pooling(call, false, false, call.specs[0].sizes);
  const auto grad = read<double>(call.args.tensor(Arg::grad));
  const auto places = read<int64_t>(call.args.tensor(Arg::argmax));
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  pooling.for_each_result([&](int64_t r, int64_t bin, int64_t c) {
    const size_t from = pooling.place(r, c, bin);
    if (places[from] >= 0)
      result[pooling.element(pooling.image(r), c, 0, places[from])] += grad[from];
  });
  if (call.wants(0)) write(call.out(0), result);
}

// torchvision leaves out the last row and column on the way there, but not on the way back.
void ps_roi_pool(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const Pooling pooling(call, false, true, input.sizes);
  const auto image = read<double>(input);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  pooling.for_each_result([&](int64_t r, int64_t bin, int64_t c) {
    const auto y = pooling.elements(r, 0, bin / pooling.pooled[1], pooling.sizes[0] - 1);
    const auto x = pooling.elements(r, 1, bin % pooling.pooled[1], pooling.sizes[1] - 1);
    double sum = 0;
    for (int64_t j = y.low; j < y.high; ++j)
      for (int64_t k = x.low; k < x.high; ++k)
        sum += image[pooling.element(pooling.image(r), c, j, k)];
    const int64_t area = y.size() * x.size();
    result[pooling.place(r, c, bin)] = area == 0 ? 0 : sum / static_cast<double>(area);
  });
  if (call.wants(0)) write(call.out(0), result);
  write_channels(call, pooling);
}

void ps_roi_pool_backward(const CpuCall& call) {
  const Pooling pooling(call, false, true, call.specs[0].sizes);
  const auto grad = read<double>(call.args.tensor(Arg::grad));
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  pooling.for_each_result([&](int64_t r, int64_t bin, int64_t c) {
    const auto y = pooling.elements(r, 0, bin / pooling.pooled[1], pooling.sizes[0]);
    const auto x = pooling.elements(r, 1, bin % pooling.pooled[1], pooling.sizes[1]);
    const auto area = static_cast<double>(y.size() * x.size());
    for (int64_t j = y.low; j < y.high; ++j)
      for (int64_t k = x.low; k < x.high; ++k)
        result[pooling.element(pooling.image(r), c, j, k)] += grad[pooling.place(r, c, bin)] / area;
  });
  if (call.wants(0)) write(call.out(0), result);
}

constexpr CpuOperator kOperators[] = {
    {"torchvision::nms.out", nms},
    {"torchvision::roi_align.out", roi_align<false>},
    {"torchvision::_roi_align_backward.out", roi_align_backward<false>},
    {"torchvision::roi_pool.out", roi_pool},
    {"torchvision::_roi_pool_backward.out", roi_pool_backward},
    {"torchvision::ps_roi_align.out", roi_align<true>},
    {"torchvision::_ps_roi_align_backward.out", roi_align_backward<true>},
    {"torchvision::ps_roi_pool.out", ps_roi_pool},
    {"torchvision::_ps_roi_pool_backward.out", ps_roi_pool_backward},
};

}  // namespace

std::span<const CpuOperator> vision_operators() {
  static const auto all = joined({kOperators, deform_operators()});
  return all;
}

}  // namespace ocltensor::cpu
