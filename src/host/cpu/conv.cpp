// Convolution in one to three dimensions by im2col and a matrix product. A transposed convolution
// is the gradient of a plain one with respect to its input, so three functions for plain
// convolutions are enough.
#include "call.h"
#include "matmul.h"

namespace ocltensor::cpu {
namespace {

// A plain convolution of [samples, channels, in...] to [samples, features, out...], padded to three
// spatial dimensions.
struct Plain {
  int64_t samples, channels, features, groups;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t in_size, out_size, kernel_size;
  int64_t group_channels() const { return channels / groups; }
  int64_t group_features() const { return features / groups; }
  int64_t column_rows() const { return group_channels() * kernel_size; }
};

int64_t padded(std::span<const int64_t> values, size_t d, size_t rank, int64_t filler) {
  const size_t skip = 3 - rank;
  if (d < skip) return filler;
  return values.size() == 1 ? values[0] : values[d - skip];
}

// `large` is the plain convolution's input, `small` its output.
Plain describe(const Args& args, std::span<const int64_t> large, std::span<const int64_t> small,
               std::span<const int64_t> weight) {
  Plain p{};
  p.samples = large[0];
  p.channels = large[1];
  p.features = small[1];
  p.groups = args.integer(Arg::groups);
  p.in_size = p.out_size = p.kernel_size = 1;
  const size_t rank = weight.size() - 2;
  for (size_t d = 0; d < 3; ++d) {
    p.in[d] = padded(large.subspan(2), d, rank, 1);
    p.out[d] = padded(small.subspan(2), d, rank, 1);
    p.kernel[d] = padded(weight.subspan(2), d, rank, 1);
    p.stride[d] = padded(args.ints(Arg::stride), d, rank, 1);
    p.padding[d] = padded(args.ints(Arg::padding), d, rank, 0);
    p.dilation[d] = padded(args.ints(Arg::dilation), d, rank, 1);
    p.in_size *= p.in[d];
    p.out_size *= p.out[d];
    p.kernel_size *= p.kernel[d];
  }
  return p;
}

// Calls f(position in the column matrix, position in the image) for every pair that exists.
template <typename F>
void for_each_pair(const Plain& p, F&& f) {
  int64_t row = 0;
  for (int64_t c = 0; c < p.group_channels(); ++c)
    for (int64_t k0 = 0; k0 < p.kernel[0]; ++k0)
      for (int64_t k1 = 0; k1 < p.kernel[1]; ++k1)
        for (int64_t k2 = 0; k2 < p.kernel[2]; ++k2, ++row) {
          int64_t column = row * p.out_size;
          for (int64_t o0 = 0; o0 < p.out[0]; ++o0)
            for (int64_t o1 = 0; o1 < p.out[1]; ++o1)
              for (int64_t o2 = 0; o2 < p.out[2]; ++o2, ++column) {
                const int64_t i0 = o0 * p.stride[0] - p.padding[0] + k0 * p.dilation[0];
                const int64_t i1 = o1 * p.stride[1] - p.padding[1] + k1 * p.dilation[1];
                const int64_t i2 = o2 * p.stride[2] - p.padding[2] + k2 * p.dilation[2];
                if (i0 < 0 || i1 < 0 || i2 < 0 || i0 >= p.in[0] || i1 >= p.in[1] || i2 >= p.in[2])
                  continue;
                f(column, ((c * p.in[0] + i0) * p.in[1] + i1) * p.in[2] + i2);
              }
        }
}

template <typename T>
std::vector<T> to_columns(const Plain& p, const T* image) {
  std::vector<T> columns(static_cast<size_t>(p.column_rows() * p.out_size));
  for_each_pair(p, [&](int64_t c, int64_t i) { columns[static_cast<size_t>(c)] = image[i]; });
  return columns;
}

template <typename T>
using Values = std::vector<T>;

// Calls f(image, features, weights) with the offsets of every sample and group.
template <typename F>
void for_each_group(const Plain& p, F&& f) {
  for (int64_t n = 0; n < p.samples; ++n)
    for (int64_t g = 0; g < p.groups; ++g)
      f((n * p.channels + g * p.group_channels()) * p.in_size,
        (n * p.features + g * p.group_features()) * p.out_size,
        g * p.group_features() * p.column_rows());
}

template <typename T>
Values<T> forward(const Plain& p, const Values<T>& image, const Values<T>& weight) {
  Values<T> result(static_cast<size_t>(p.samples * p.features * p.out_size));
  for_each_group(p, [&](int64_t i, int64_t o, int64_t w) {
    const Values<T> columns = to_columns(p, image.data() + i);
    multiply(weight.data() + w, columns.data(), result.data() + o, p.group_features(), p.out_size,
             p.column_rows());
  });
  return result;
}

template <typename T>
Values<T> image_gradient(const Plain& p, const Values<T>& gradient, const Values<T>& weight) {
  Values<T> result(static_cast<size_t>(p.samples * p.channels * p.in_size));
  Values<T> columns(static_cast<size_t>(p.column_rows() * p.out_size));
  for_each_group(p, [&](int64_t i, int64_t o, int64_t w) {
    multiply(weight.data() + w, gradient.data() + o, columns.data(), p.column_rows(), p.out_size,
             p.group_features(), {.a_transposed = true});
    for_each_pair(p, [&](int64_t column, int64_t at) {
      result[static_cast<size_t>(i + at)] += columns[static_cast<size_t>(column)];
    });
  });
  return result;
}

template <typename T>
Values<T> weight_gradient(const Plain& p, const Values<T>& gradient, const Values<T>& image) {
  Values<T> result(static_cast<size_t>(p.features * p.column_rows()));
  for_each_group(p, [&](int64_t i, int64_t o, int64_t w) {
    const Values<T> columns = to_columns(p, image.data() + i);
    multiply(gradient.data() + o, columns.data(), result.data() + w, p.group_features(),
             p.column_rows(), p.out_size, {.b_transposed = true, .accumulate = true});
  });
  return result;
}

void convolution(const CpuCall& call) {
  const View input = call.args.tensor(Arg::input);
  const View weight = call.args.tensor(Arg::weight);
  const bool transposed = call.args.boolean(Arg::transposed);
  const Dims& sizes = call.specs[0].sizes;
  const Plain p = transposed ? describe(call.args, sizes, input.sizes, weight.sizes)
                             : describe(call.args, input.sizes, sizes, weight.sizes);
  // Integers are exact, and wrap around.
  with_compute(input.type, [&]<typename T>(T) {
    Values<T> result = transposed ? image_gradient(p, read<T>(input), read<T>(weight))
                                  : forward(p, read<T>(input), read<T>(weight));
    if (const auto bias = call.args.optional_tensor(Arg::bias)) {
      const auto b = read<T>(View(*bias));
      const size_t area =
          result.size() / static_cast<size_t>(std::max<int64_t>(1, sizes[0] * sizes[1]));
      for (size_t i = 0; i < result.size(); ++i) result[i] += b[i / area % b.size()];
    }
    write(call.out(0), result);
  });
}

void convolution_backward(const CpuCall& call) {
  const View gradient = call.args.tensor(Arg::grad_output);
  const View input = call.args.tensor(Arg::input);
  const View weight = call.args.tensor(Arg::weight);
  const bool transposed = call.args.boolean(Arg::transposed);
  const Plain p = transposed ? describe(call.args, gradient.sizes, input.sizes, weight.sizes)
                             : describe(call.args, input.sizes, gradient.sizes, weight.sizes);
  const auto g = read<double>(gradient);
  const auto x = read<double>(input);
  const auto w = read<double>(weight);
  if (call.wants(0)) write(call.out(0), transposed ? forward(p, g, w) : image_gradient(p, g, w));
  if (call.wants(1))
    write(call.out(1), transposed ? weight_gradient(p, x, g) : weight_gradient(p, g, x));
  if (!call.wants(2)) return;
  const auto channels = static_cast<size_t>(gradient.sizes[1]);
  Values<double> bias(channels);
  const size_t area = g.size() / std::max<size_t>(1, channels * static_cast<size_t>(p.samples));
  for (size_t i = 0; i < g.size(); ++i) bias[i / area % channels] += g[i];
  write(call.out(2), bias);
}

constexpr CpuOperator kOperators[] = {
    {"convolution.out", convolution},
    {"convolution_backward.out", convolution_backward},
};

}  // namespace

std::span<const CpuOperator> conv_operators() { return kOperators; }

}  // namespace ocltensor::cpu
