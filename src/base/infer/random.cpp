// Inference for random numbers.
#include "common.h"

namespace ocltensor::infer {

Specs multinomial(const Args& args) {
  const auto self = args.tensor(0);
  const int64_t samples = args.integer(1);
  check_floating(args, self);
  check(self.ndim() == 1 || self.ndim() == 2, "multinomial needs 1 or 2 dimensions, got {}",
        self.ndim());
  check(samples > 0, "multinomial cannot draw {} samples", samples);
  check(self.size(-1) <= int64_t{1} << 24,
        "multinomial: number of categories cannot exceed 2^24, got {}", self.size(-1));
  check(args.boolean(2) || samples <= self.size(-1),
        "multinomial cannot draw {} samples from {} categories without replacement", samples,
        self.size(-1));
  Dims sizes = self.sizes();
  sizes.back() = samples;
  return {spec(DType::Int64, sizes)};
}

Specs native_dropout(const Args& args) {
  const auto input = args.tensor(0);
  check_floating(args, input);
  check(args.real(1) >= 0 && args.real(1) <= 1,
        "native_dropout: the probability must be between 0 and 1, got {}", args.real(1));
  return {spec_like(input.dtype(), input), spec_like(DType::Bool, input)};
}

Specs native_dropout_backward(const Args& args) {
  const auto grad = args.tensor(0);
  check(args.tensor(1).dtype() == DType::Bool, "native_dropout_backward: mask must be bool");
  return {spec(grad.dtype(), broadcast(grad.sizes(), args.tensor(1).sizes()))};
}

Specs random_like(const Args& args) {
  const auto self = args.tensor(0);
  return {spec(self.dtype(), self.sizes())};
}

Specs randperm(const Args& args) {
  check(args.integer(0) >= 0, "randperm: n must not be negative, got {}", args.integer(0));
  return {spec(DType::Int64, Dims{args.integer(0)})};
}

}  // namespace ocltensor::infer
