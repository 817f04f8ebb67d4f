// Inference for convolution in one to three dimensions, plain and transposed.
#include "common.h"

namespace ocltensor::infer {
namespace {

struct Geometry {
  Dims stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};

Geometry geometry(const Args& args, size_t rank) {
  const Dims none;
  Geometry g{spatial(args, Arg::stride, rank, none),
             spatial(args, Arg::padding, rank, none),
             spatial(args, Arg::dilation, rank, none),
             spatial(args, Arg::output_padding, rank, none),
             args.boolean(Arg::transposed),
             args.integer(Arg::groups)};
  check(g.groups > 0, "convolution: groups must be positive, got {}", g.groups);
  for (size_t d = 0; d < rank; ++d) {
    check(g.stride[d] > 0, "convolution: strides must be positive, got {}", to_string(g.stride));
    check(g.dilation[d] > 0, "convolution: dilation must be positive, got {}",
          to_string(g.dilation));
    check(g.padding[d] >= 0 && g.output_padding[d] >= 0,
          "convolution: padding must not be negative, got {} and output_padding {}",
          to_string(g.padding), to_string(g.output_padding));
    check(!g.transposed || g.output_padding[d] < std::max(g.stride[d], g.dilation[d]),
          "convolution: output_padding must be smaller than stride or dilation, got {}",
          to_string(g.output_padding));
  }
  return g;
}

Dims output_sizes(const Args& args, TensorView input, TensorView weight) {
  if (!is_integral(input.dtype(), false)) check_floating(args, input);
  check_same_type(args, input, weight);
  check(weight.ndim() >= 3 && weight.ndim() <= 5 && input.ndim() == weight.ndim(),
        "convolution needs input and weight of the same 3 to 5 dimensions, got {} and {}",
        to_string(input.sizes()), to_string(weight.sizes()));
  const auto rank = static_cast<size_t>(weight.ndim()) - 2;
  const Geometry g = geometry(args, rank);
  const int64_t channels = g.transposed ? weight.size(0) : weight.size(1) * g.groups;
  check(input.size(1) == channels && weight.size(0) % g.groups == 0,
        "convolution: weight of shape {} in {} groups does not fit an input of shape {}",
        to_string(weight.sizes()), g.groups, to_string(input.sizes()));
  Dims sizes{input.size(0), g.transposed ? weight.size(1) * g.groups : weight.size(0)};
  for (size_t d = 0; d < rank; ++d) {
    const auto k = static_cast<int64_t>(d) + 2;
    const int64_t reach = g.dilation[d] * (weight.size(k) - 1) + 1;
    const int64_t padded = input.size(k) + 2 * g.padding[d];
    const int64_t size = g.transposed ? (input.size(k) - 1) * g.stride[d] - 2 * g.padding[d] +
                                            reach + g.output_padding[d]
                                      : (padded < reach ? -1 : (padded - reach) / g.stride[d] + 1);
    check(size >= (g.transposed ? 1 : 0),
          "convolution: kernel of size {} does not fit the padded input of size {}", weight.size(k),
          padded);
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

Specs convolution(const Args& args) {
  const auto input = args.tensor(Arg::input);
  const Dims sizes = output_sizes(args, input, args.tensor(Arg::weight));
  if (const auto bias = args.optional_tensor(Arg::bias)) {
    check_same_type(args, input, *bias);
    check(bias->ndim() == 1 && bias->size(0) == sizes[1],
          "convolution: bias must have shape [{}], got {}", sizes[1], to_string(bias->sizes()));
  }
  return {spec(input.dtype(), sizes)};
}

Specs convolution_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  const auto input = args.tensor(Arg::input);
  const auto weight = args.tensor(Arg::weight);
  check_floating(args, input);
  const Dims sizes = output_sizes(args, input, weight);
  check(Dims(grad.sizes()) == sizes, "convolution_backward: grad_output must have shape {}, got {}",
        to_string(sizes), to_string(grad.sizes()));
  check_same_type(args, grad, input);
  const auto mask = args.booleans(Arg::output_mask);
  check(mask.size() == 3, "convolution_backward: output_mask must have 3 entries, got {}",
        mask.size());
  const DType type = input.dtype();
  return {mask[0] ? spec(type, input.sizes()) : no_output(type),
          mask[1] ? spec(type, weight.sizes()) : no_output(type),
          mask[2] ? spec(type, Dims{sizes[1]}) : no_output(type)};
}

}  // namespace ocltensor::infer
