// Inference for batch, layer and group normalisation. Statistics of half types are float32.
#include "common.h"

namespace ocltensor::infer {
namespace {

void check_vector(const Args& args, Arg a, int64_t length) {
  const auto t = args.optional_tensor(a);
  check(!t || t->numel() == length, "{}: '{}' must have {} elements, got shape {}",
        args.schema().full_name(), name(a), length,
        t ? std::string(to_string(t->sizes())) : std::string());
}

Dims check_layer(const Args& args, TensorView input, std::span<const int64_t> normalized) {
  check_floating(args, input);
  const std::string name = args.schema().full_name();
  check(!normalized.empty(), "{}: normalized_shape must not be empty", name);
  const auto rank = static_cast<size_t>(input.ndim());
  check(
      rank >= normalized.size() && Dims(input.sizes().last(normalized.size())) == Dims(normalized),
      "{}: an input of shape {} does not end in normalized_shape {}", name,
      to_string(input.sizes()), to_string(normalized));
  Dims statistics = input.sizes();
  for (size_t d = rank - normalized.size(); d < rank; ++d) statistics[d] = 1;
  return statistics;
}

void check_group(const Args& args, TensorView input) {
  check_floating(args, input);
  const int64_t n = args.integer(Arg::N);
  const int64_t channels = args.integer(Arg::C);
  const int64_t spatial_size = args.integer(Arg::HxW);
  const int64_t groups = args.integer(Arg::group);
  check(groups > 0 && channels % groups == 0,
        "native_group_norm: {} channels cannot be divided into {} groups", channels, groups);
  check(input.numel() == n * channels * spatial_size,
        "native_group_norm: an input of shape {} does not have N {}, C {} and HxW {}",
        to_string(input.sizes()), n, channels, spatial_size);
}

Specs masked(const Args& args, Specs specs) {
  const auto mask = args.booleans(Arg::output_mask);
  check(mask.size() == specs.size(), "{}: output_mask must have {} entries, got {}",
        args.schema().full_name(), specs.size(), mask.size());
  for (size_t i = 0; i < specs.size(); ++i)
    if (!mask[i]) specs[i] = no_output(specs[i].dtype);
  return specs;
}

DType weight_type(const Args& args, DType fallback) {
  const auto weight = args.optional_tensor(Arg::weight);
  return weight ? weight->dtype() : fallback;
}

}  // namespace

Specs native_batch_norm(const Args& args) {
  const auto input = args.tensor(Arg::input);
  check_floating(args, input);
  check(input.ndim() >= 2, "native_batch_norm needs an input of at least 2 dimensions, got {}",
        to_string(input.sizes()));
  for (const Arg a : {Arg::weight, Arg::bias, Arg::running_mean, Arg::running_var})
    check_vector(args, a, input.size(1));
  const bool training = args.boolean(Arg::training);
  check(training || (!args.is_none(Arg::running_mean) && !args.is_none(Arg::running_var)),
        "native_batch_norm: running_mean and running_var are needed unless training");
  const Dims statistics{training ? input.size(1) : 0};
  const DType type = compute_type(input.dtype());
  return {spec(input.dtype(), input.sizes()), spec(type, statistics), spec(type, statistics)};
}

Specs native_batch_norm_backward(const Args& args) {
  const auto input = args.tensor(Arg::input);
  check_floating(args, input);
  check(input.ndim() >= 2, "native_batch_norm_backward needs an input of at least 2 dimensions");
  for (const Arg a : {Arg::weight, Arg::running_mean, Arg::running_var})
    check_vector(args, a, input.size(1));
  const DType type = weight_type(args, input.dtype());
  const Dims channels{input.size(1)};
  return masked(args,
                {spec(input.dtype(), input.sizes()), spec(type, channels), spec(type, channels)});
}

Specs native_layer_norm(const Args& args) {
  const auto input = args.tensor(Arg::input);
  const Dims statistics = check_layer(args, input, args.ints(Arg::normalized_shape));
  check_vector(args, Arg::weight, numel(args.ints(Arg::normalized_shape)));
  check_vector(args, Arg::bias, numel(args.ints(Arg::normalized_shape)));
  const DType type = compute_type(input.dtype());
  return {spec(input.dtype(), input.sizes()), spec(type, statistics), spec(type, statistics)};
}

Specs native_layer_norm_backward(const Args& args) {
  const auto input = args.tensor(Arg::input);
  (void)check_layer(args, input, args.ints(Arg::normalized_shape));
  const DType type = weight_type(args, input.dtype());
  return masked(args,
                {spec(input.dtype(), input.sizes()), spec(type, args.ints(Arg::normalized_shape)),
                 spec(type, args.ints(Arg::normalized_shape))});
}

Specs fused_rms_norm(const Args& args) {
  const auto input = args.tensor(Arg::input);
  const Dims statistics = check_layer(args, input, args.ints(Arg::normalized_shape));
  check_vector(args, Arg::weight, numel(args.ints(Arg::normalized_shape)));
  return {spec(input.dtype(), input.sizes()), spec(compute_type(input.dtype()), statistics)};
}

Specs fused_rms_norm_backward(const Args& args) {
  const auto input = args.tensor(Arg::input);
  (void)check_layer(args, input, args.ints(Arg::normalized_shape));
  return masked(args, {spec(input.dtype(), input.sizes()),
                       spec(weight_type(args, input.dtype()), args.ints(Arg::normalized_shape))});
}

Specs native_group_norm(const Args& args) {
  const auto input = args.tensor(Arg::input);
  check_group(args, input);
  check_vector(args, Arg::weight, args.integer(Arg::C));
  check_vector(args, Arg::bias, args.integer(Arg::C));
  const Dims statistics{args.integer(Arg::N), args.integer(Arg::group)};
  const DType type = compute_type(input.dtype());
  return {spec(input.dtype(), input.sizes()), spec(type, statistics), spec(type, statistics)};
}

Specs native_group_norm_backward(const Args& args) {
  const auto input = args.tensor(Arg::input);
  check_group(args, input);
  const DType type = weight_type(args, input.dtype());
  const Dims channels{args.integer(Arg::C)};
  return masked(args,
                {spec(input.dtype(), input.sizes()), spec(type, channels), spec(type, channels)});
}

}  // namespace ocltensor::infer
