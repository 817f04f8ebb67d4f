// Inference for random numbers.
#include "common.h"

namespace ocltensor::infer {

Specs binomial(const Args& args) {
  const auto count = args.tensor(Arg::count), prob = args.tensor(Arg::prob);
  check(is_floating(count.dtype()),
        "binomial only supports floating-point dtypes for count, got: {}", name(count.dtype()));
  check_same_type(args, prob, count);
  return {spec(count.dtype(), broadcast(count.sizes(), prob.sizes()))};
}

Specs multinomial(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const int64_t samples = args.integer(Arg::num_samples);
  check_floating(args, self);
  check(self.ndim() == 1 || self.ndim() == 2, "multinomial needs 1 or 2 dimensions, got {}",
        self.ndim());
  check(samples > 0, "multinomial cannot draw {} samples", samples);
  check(self.size(-1) <= int64_t{1} << 24,
        "multinomial: number of categories cannot exceed 2^24, got {}", self.size(-1));
  check(args.boolean(Arg::replacement) || samples <= self.size(-1),
        "multinomial cannot draw {} samples from {} categories without replacement", samples,
        self.size(-1));
  Dims sizes = self.sizes();
  sizes.back() = samples;
  return {spec(DType::Int64, sizes)};
}

Specs native_dropout(const Args& args) {
  const auto input = args.tensor(Arg::input);
  check_floating(args, input);
  check(args.real(Arg::p) >= 0 && args.real(Arg::p) <= 1,
        "native_dropout: the probability must be between 0 and 1, got {}", args.real(Arg::p));
  return {spec_like(input.dtype(), input), spec_like(DType::Bool, input)};
}

Specs native_dropout_backward(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  check(args.tensor(Arg::mask).dtype() == DType::Bool,
        "native_dropout_backward: mask must be bool");
  return {spec(grad.dtype(), broadcast(grad.sizes(), args.tensor(Arg::mask).sizes()))};
}

Specs random_floating(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  return {spec(self.dtype(), self.sizes())};
}

Specs random_like(const Args& args) {
  const auto self = args.tensor(Arg::self);
  return {spec(self.dtype(), self.sizes())};
}

Specs randperm(const Args& args) {
  check(args.integer(Arg::n) >= 0, "randperm: n must not be negative, got {}",
        args.integer(Arg::n));
  return {spec(DType::Int64, Dims{args.integer(Arg::n)})};
}

}  // namespace ocltensor::infer
