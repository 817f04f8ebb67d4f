// Inference for pooling over the last two dimensions.
#include "common.h"

namespace ocltensor::infer {
namespace {

// Checks the input and returns the shape after pooling.
Dims window(const Args& args, TensorView self) {
  check(self.ndim() == 3 || self.ndim() == 4, "{} needs an input of 3 or 4 dimensions, got {}",
        args.schema().full_name(), to_string(self.sizes()));
  const Dims kernel = spatial(args, Arg::kernel_size, 2, {});
  const Dims stride = spatial(args, Arg::stride, 2, kernel);
  const Dims padding = spatial(args, Arg::padding, 2, {});
  const Dims dilation = args.has(Arg::dilation) ? spatial(args, Arg::dilation, 2, {}) : Dims{1, 1};
  Dims sizes = self.sizes();
  for (size_t d = 0; d < 2; ++d) {
    int64_t& size = sizes[sizes.size() - 2 + d];
    size = pooled_size(size, kernel[d], padding[d], stride[d], dilation[d],
                       args.boolean(Arg::ceil_mode));
  }
  return sizes;
}

Specs backward(const Args& args, TensorView self, const Dims& expected) {
  check(Dims(args.tensor(Arg::grad_output).sizes()) == expected,
        "{}: grad_output must have shape {}, got {}", args.schema().full_name(),
        to_string(expected), to_string(args.tensor(Arg::grad_output).sizes()));
  return {spec(self.dtype(), self.sizes())};
}

void check_divisor(const Args& args) {
  check(args.optional_integer(Arg::divisor_override) != 0, "{}: divisor_override must not be zero",
        args.schema().full_name());
}

// Checks the input of adaptive pooling and returns the shape after it.
Dims adaptive(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  check(self.ndim() == 3 || self.ndim() == 4, "{} needs an input of 3 or 4 dimensions, got {}",
        args.schema().full_name(), to_string(self.sizes()));
  const Dims output = spatial(args, Arg::output_size, 2, {});
  Dims sizes = self.sizes();
  check(sizes[sizes.size() - 1] > 0 && sizes[sizes.size() - 2] > 0 && output[0] >= 0 &&
            output[1] >= 0,
        "{}: cannot pool shape {} to {}", args.schema().full_name(), to_string(sizes),
        to_string(output));
  sizes[sizes.size() - 2] = output[0];
  sizes[sizes.size() - 1] = output[1];
  return sizes;
}

}  // namespace

Specs adaptive_avg_pool2d(const Args& args) {
  return {spec(args.tensor(Arg::self).dtype(), adaptive(args))};
}

Specs adaptive_avg_pool2d_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  const auto self = args.tensor(Arg::self);
  check(grad.ndim() == self.ndim() && (self.ndim() == 3 || self.ndim() == 4) &&
            Dims(grad.sizes().first(grad.sizes().size() - 2)) ==
                Dims(self.sizes().first(self.sizes().size() - 2)),
        "_adaptive_avg_pool2d_backward: grad_output of shape {} does not fit an input of shape {}",
        to_string(grad.sizes()), to_string(self.sizes()));
  check_same_type(args, grad, self);
  return {spec(self.dtype(), self.sizes())};
}

Specs adaptive_max_pool2d(const Args& args) {
  const Dims sizes = adaptive(args);
  return {spec(args.tensor(Arg::self).dtype(), sizes), spec(DType::Int64, sizes)};
}

Specs avg_pool2d(const Args& args) {
  check_floating_or_int64(args, args.tensor(Arg::self));
  check_divisor(args);
  return {spec(args.tensor(Arg::self).dtype(), window(args, args.tensor(Arg::self)))};
}

Specs avg_pool2d_backward(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_divisor(args);
  return backward(args, self, window(args, self));
}

Specs max_pool2d_with_indices(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const Dims sizes = window(args, self);
  return {spec(self.dtype(), sizes), spec(DType::Int64, sizes)};
}

Specs max_pool2d_with_indices_backward(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const Dims sizes = window(args, self);
  check(Dims(args.tensor(Arg::indices).sizes()) == sizes &&
            args.tensor(Arg::indices).dtype() == DType::Int64,
        "max_pool2d_with_indices_backward: indices must be int64 of shape {}", to_string(sizes));
  return backward(args, self, sizes);
}

namespace {

Specs fractional_max_pool(const Args& args, size_t dims) {
  const auto self = args.tensor(Arg::self), samples = args.tensor(Arg::random_samples);
  const Dims kernel = spatial(args, Arg::kernel_size, dims, {});
  const Dims output = spatial(args, Arg::output_size, dims, {});
  check_floating(args, self);
  check_same_type(args, self, samples);
  Dims sizes = self.sizes();
  check(sizes.size() == dims + 1 || sizes.size() == dims + 2,
        "{}: expected an input of {} or {} dimensions, got {}", args.schema().full_name(), dims + 1,
        dims + 2, to_string(self.sizes()));
  const size_t first = sizes.size() - dims;
  const int64_t batch = first == 2 ? sizes[0] : 1;  // samples for more of them may be given
  check(samples.ndim() == 3 && samples.size(0) >= batch && samples.size(1) == sizes[first - 1] &&
            samples.size(2) == static_cast<int64_t>(dims),
        "{}: random_samples of shape {} do not fit an input of shape {}", args.schema().full_name(),
        to_string(samples.sizes()), to_string(self.sizes()));
  for (size_t d = 0; d < dims; ++d) {
    // In three dimensions ATen requires one more element.
    const int64_t room = sizes[first + d] - (dims == 3 ? 1 : 0);
    check(kernel[d] > 0 && output[d] > 0 && output[d] + kernel[d] - 1 <= room,
          "{}: windows of {} and results of {} are too large for an input of shape {}",
          args.schema().full_name(), to_string(kernel), to_string(output), to_string(self.sizes()));
    sizes[first + d] = output[d];
  }
  return {spec(self.dtype(), sizes), spec(DType::Int64, sizes)};
}

}  // namespace

Specs fractional_max_pool2d(const Args& args) { return fractional_max_pool(args, 2); }
Specs fractional_max_pool3d(const Args& args) { return fractional_max_pool(args, 3); }

}  // namespace ocltensor::infer
