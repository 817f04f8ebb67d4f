// Pooling over the last two dimensions; all others are planes.
#include <limits>

#include "base/infer/common.h"
#include "call.h"

namespace ocltensor::cpu {
namespace {

struct Image {
  int64_t planes, height, width;
  explicit Image(std::span<const int64_t> sizes)
      : planes(numel(sizes.first(sizes.size() - 2))),
        height(sizes[sizes.size() - 2]),
        width(sizes.back()) {}
  int64_t area() const { return height * width; }
};

struct Range {
  int64_t begin, end;
};

struct Window {
  Dims kernel, stride, padding, dilation{1, 1};
  explicit Window(const Args& args)
      : kernel(infer::spatial(args, Arg::kernel_size, 2, {})),
        stride(infer::spatial(args, Arg::stride, 2, kernel)),
        padding(infer::spatial(args, Arg::padding, 2, {})) {
    if (args.has(Arg::dilation)) dilation = infer::spatial(args, Arg::dilation, 2, {});
  }
};

// ---- maximum: a NaN is the maximum; the index is the position in the plane

template <typename T>
void max_plane(const Window& w, const T* in, const Image& from, const Image& to, T* values,
               int64_t* indices) {
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x) {
      int64_t best = -1;
      for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
          const int64_t iy = y * w.stride[0] - w.padding[0] + ky * w.dilation[0];
          const int64_t ix = x * w.stride[1] - w.padding[1] + kx * w.dilation[1];
          if (iy < 0 || ix < 0 || iy >= from.height || ix >= from.width) continue;
          const int64_t at = iy * from.width + ix;
          if (best < 0 || in[at] > in[best] || in[at] != in[at]) best = at;
        }
      // A dilated window may have no element inside a small image.
      *values++ = best < 0 ? std::numeric_limits<T>::lowest() : in[best];
      *indices++ = std::max<int64_t>(best, 0);
    }
}

void max_pool(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const Window w(call.args);
  const Image from(self.sizes);
  const Image to(call.specs[0].sizes);
  with_compute(self.type, [&]<typename T>(T) {
    const auto in = read<T>(self);
    std::vector<T> values(static_cast<size_t>(to.planes * to.area()));
    std::vector<int64_t> indices(values.size());
    for (int64_t p = 0; p < from.planes; ++p)
      max_plane(w, in.data() + p * from.area(), from, to, values.data() + p * to.area(),
                indices.data() + p * to.area());
    write(call.out(0), values);
    write(call.out(1), indices);
  });
}

void max_pool_backward(const CpuCall& call) {
  const auto gradient = read<double>(call.args.tensor(Arg::grad_output));
  const auto indices = read<int64_t>(call.args.tensor(Arg::indices));
  const Image to(call.specs[0].sizes);
  const Image from(call.args.tensor(Arg::grad_output).sizes());
  std::vector<double> result(static_cast<size_t>(to.planes * to.area()));
  for (size_t i = 0; i < gradient.size(); ++i) {
    check(indices[i] >= 0 && indices[i] < to.area(),
          "max_pool2d_with_indices_backward: index {} is outside of the image", indices[i]);
    const int64_t plane = static_cast<int64_t>(i) / from.area();
    result[static_cast<size_t>(plane * to.area() + indices[i])] += gradient[i];
  }
  write(call.out(0), result);
}

// ---- averages: for both operators, the rows and columns of each window, and its divisor

struct Average {
  std::vector<Range> rows, columns;
  std::vector<int64_t> row_counts, column_counts;  // counted elements of each window
  double divisor = 0;                              // 0: the product of the counts
  double weight(int64_t y, int64_t x) const {
    return 1 / (divisor != 0 ? divisor
                             : static_cast<double>(row_counts[static_cast<size_t>(y)] *
                                                   column_counts[static_cast<size_t>(x)]));
  }
};

void windows(const Window& w, size_t d, int64_t in, int64_t out, bool count_padding,
             std::vector<Range>& ranges, std::vector<int64_t>& counts) {
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = o * w.stride[d] - w.padding[d];
    const int64_t end = std::min(begin + w.kernel[d], in + w.padding[d]);
    ranges.push_back({std::max<int64_t>(begin, 0), std::min(end, in)});
    counts.push_back(count_padding ? end - begin : ranges.back().end - ranges.back().begin);
  }
}

Average plain_average(const Args& args, const Image& in, const Image& out) {
  Average a;
  const Window w(args);
  const bool count_padding = args.boolean(Arg::count_include_pad);
  windows(w, 0, in.height, out.height, count_padding, a.rows, a.row_counts);
  windows(w, 1, in.width, out.width, count_padding, a.columns, a.column_counts);
  a.divisor = static_cast<double>(args.optional_integer(Arg::divisor_override).value_or(0));
  return a;
}

void adaptive(int64_t in, int64_t out, std::vector<Range>& ranges, std::vector<int64_t>& counts) {
  for (int64_t o = 0; o < out; ++o) {
    ranges.push_back({o * in / out, ((o + 1) * in + out - 1) / out});
    counts.push_back(ranges.back().end - ranges.back().begin);
  }
}

Average adaptive_average(const Image& in, const Image& out) {
  Average a;
  adaptive(in.height, out.height, a.rows, a.row_counts);
  adaptive(in.width, out.width, a.columns, a.column_counts);
  return a;
}

// Calls f(input position, output position, weight) for every element of every window.
template <typename F>
void for_each_weight(const Average& a, const Image& in, const Image& out, F&& f) {
  for (int64_t p = 0; p < in.planes; ++p)
    for (int64_t y = 0; y < out.height; ++y)
      for (int64_t x = 0; x < out.width; ++x) {
        const Range rows = a.rows[static_cast<size_t>(y)];
        const Range columns = a.columns[static_cast<size_t>(x)];
        const double weight = a.weight(y, x);
        const auto to = static_cast<size_t>((p * out.height + y) * out.width + x);
        for (int64_t iy = rows.begin; iy < rows.end; ++iy)
          for (int64_t ix = columns.begin; ix < columns.end; ++ix)
            f(static_cast<size_t>((p * in.height + iy) * in.width + ix), to, weight);
      }
}

void average(const CpuCall& call, const Average& a) {
  const View self = call.args.tensor(Arg::self);
  const auto in = read<double>(self);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  for_each_weight(a, Image(self.sizes), Image(call.specs[0].sizes),
                  [&](size_t from, size_t to, double) { result[to] += in[from]; });
  // Summed first, divided once: one rounding fewer.
  const Image out(call.specs[0].sizes);
  for (size_t i = 0; i < result.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    result[i] *= a.weight(at / out.width % out.height, at % out.width);
  }
  write(call.out(0), result);
}

void average_backward(const CpuCall& call, const Average& a) {
  const View gradient = call.args.tensor(Arg::grad_output);
  const auto g = read<double>(gradient);
  std::vector<double> result(static_cast<size_t>(numel(call.specs[0].sizes)));
  for_each_weight(a, Image(call.specs[0].sizes), Image(gradient.sizes),
                  [&](size_t to, size_t from, double weight) { result[to] += g[from] * weight; });
  write(call.out(0), result);
}

void avg_pool(const CpuCall& call) {
  average(call, plain_average(call.args, Image(call.args.tensor(Arg::self).sizes()),
                              Image(call.specs[0].sizes)));
}
void avg_pool_backward(const CpuCall& call) {
  average_backward(call, plain_average(call.args, Image(call.specs[0].sizes),
                                       Image(call.args.tensor(Arg::grad_output).sizes())));
}
void adaptive_avg_pool(const CpuCall& call) {
  average(call,
          adaptive_average(Image(call.args.tensor(Arg::self).sizes()), Image(call.specs[0].sizes)));
}
void adaptive_avg_pool_backward(const CpuCall& call) {
  average_backward(call, adaptive_average(Image(call.specs[0].sizes),
                                          Image(call.args.tensor(Arg::grad_output).sizes())));
}

// ---- maxima of adaptive windows

template <typename T>
void adaptive_max(const View& self, const Image& to, std::vector<T>& values,
                  std::vector<int64_t>& indices) {
  const Image from(self.sizes);
  const auto in = read<T>(self);
  const Average a = adaptive_average(from, to);
  for (int64_t p = 0; p < from.planes; ++p)
    for (const Range& rows : a.rows)
      for (const Range& columns : a.columns) {
        const T* const plane = in.data() + p * from.area();
        int64_t best = rows.begin * from.width + columns.begin;
        for (int64_t y = rows.begin; y < rows.end; ++y)
          for (int64_t x = columns.begin; x < columns.end; ++x) {
            const int64_t at = y * from.width + x;
            if (plane[at] > plane[best] || plane[at] != plane[at]) best = at;
          }
        values.push_back(plane[best]);
        indices.push_back(best);
      }
}

void adaptive_max_pool(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  with_compute(self.type, [&]<typename T>(T) {
    std::vector<T> values;
    std::vector<int64_t> indices;
    adaptive_max(self, Image(call.specs[0].sizes), values, indices);
    write(call.out(0), values);
    write(call.out(1), indices);
  });
}

// ---- windows of one size that begin at random places, drawn from a number per plane and dimension

// Every step is rounded to the samples' type, so that the result is truncated as on other backends.
int64_t fractional_start(DType type, double sample, int64_t o, int64_t in, int64_t out,
                         int64_t window) {
  if (o == out - 1) return in - window;
  const auto round = [type](double v) { return rounded(v, type); };
  const double alpha =
      round(round(static_cast<double>(in - window)) / round(static_cast<double>(out - 1)));
  return static_cast<int64_t>(round(round(round(static_cast<double>(o)) + sample) * alpha)) -
         static_cast<int64_t>(round(sample * alpha));
}

void fractional_max_pool(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const Dims& sizes = call.specs[0].sizes;
  const size_t dims = static_cast<size_t>(View(call.args.tensor(Arg::random_samples)).sizes[2]);
  const size_t first = sizes.size() - dims;
  const Dims kernel = infer::spatial(call.args, Arg::kernel_size, dims, {});
  const auto in = read<double>(self),
             samples = read<double>(View(call.args.tensor(Arg::random_samples)));
  std::vector<double> values;
  std::vector<int64_t> indices;
  const int64_t results = numel(std::span(sizes.data() + first, dims));
  const int64_t elements = numel(std::span(self.sizes.data() + first, dims));
  for (int64_t i = 0; i < numel(sizes); ++i) {
    const int64_t plane = i / results;
    int64_t rest = i % results, window = 1;
    int64_t start[3], extent[3], at[3];
    for (size_t d = dims; d-- > 0; rest /= sizes[first + d]) {
      const size_t drawn = dims == 2 ? 1 - d : d;  // in two dimensions columns are drawn first
      extent[d] = self.sizes[first + d];
      window *= kernel[d];
      start[d] = fractional_start(self.type, samples[static_cast<size_t>(plane) * dims + drawn],
                                  rest % sizes[first + d], extent[d], sizes[first + d], kernel[d]);
    }
    double best = -std::numeric_limits<double>::infinity();
    int64_t index = -1;
    for (int64_t k = 0; k < window; ++k) {
      int64_t left = k, place = 0;
      for (size_t d = dims; d-- > 0; left /= kernel[d]) at[d] = start[d] + left % kernel[d];
      for (size_t d = 0; d < dims; ++d) place = place * extent[d] + at[d];
      const double v = in[static_cast<size_t>(plane * elements + place)];
      if (index >= 0 && !(v > best) && v == v) continue;
      best = v;
      index = place;
    }
    values.push_back(best);
    indices.push_back(index);
  }
  write(call.out(0), values);
  write(call.out(1), indices);
}

constexpr CpuOperator kOperators[] = {
    {"max_pool2d_with_indices.out", max_pool},
    {"max_pool2d_with_indices_backward.grad_input", max_pool_backward},
    {"adaptive_max_pool2d.out", adaptive_max_pool},
    {"avg_pool2d.out", avg_pool},
    {"avg_pool2d_backward.grad_input", avg_pool_backward},
    {"_adaptive_avg_pool2d.out", adaptive_avg_pool},
    {"_adaptive_avg_pool2d_backward.out", adaptive_avg_pool_backward},
    {"fractional_max_pool2d.output", fractional_max_pool},
    {"fractional_max_pool3d.output", fractional_max_pool}};

}  // namespace

std::span<const CpuOperator> pool_operators() { return kOperators; }

}  // namespace ocltensor::cpu
