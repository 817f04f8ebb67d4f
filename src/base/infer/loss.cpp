// Inference for losses. Reduction 0 is none, 1 mean, 2 sum.
#include "../promotion.h"
#include "common.h"

namespace ocltensor::infer {
namespace {

TensorSpec reduced(const Args& args, DType type, std::span<const int64_t> sizes) {
  const int64_t mode = args.integer(Arg::reduction);
  check(mode >= 0 && mode <= 2, "{}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {}",
        args.schema().full_name(), mode);
  return mode == 0 ? spec(type, sizes) : spec(type, Dims{});
}

// Inference for losses that broadcast input and target.
Specs pointwise_loss(const Args& args) {
  check_floating(args, args.tensor(Arg::self));
  const auto type = promote(args.tensor(Arg::self).dtype(), args.tensor(Arg::target).dtype());
  return {reduced(args, type,
                  broadcast(args.tensor(Arg::self).sizes(), args.tensor(Arg::target).sizes()))};
}

Specs pointwise_loss_backward(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  return {spec(promote(self.dtype(), args.tensor(Arg::target).dtype()),
               broadcast(self.sizes(), args.tensor(Arg::target).sizes()))};
}

// Checks a loss over classes and returns the target's shape. The classes are dimension 1 of `self`
// (0 for a single sample); `target` has the other dimensions.
Dims check_classes(const Args& args, TensorView self, TensorView target,
                   std::optional<TensorView> weight, bool images) {
  check_floating(args, self);
  check(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8 ||
            target.dtype() == DType::Int32,
        "{}: target must hold class indices (int64), got {}", args.schema().full_name(),
        name(target.dtype()));
  check(images ? self.ndim() == 4 : self.ndim() == 1 || self.ndim() == 2,
        "{}: input must have {} dimensions, got {}", args.schema().full_name(),
        images ? "4" : "1 or 2", self.ndim());
  const int64_t classes_at = self.ndim() == 1 ? 0 : 1;
  Dims expected = self.sizes();
  expected.erase(static_cast<size_t>(classes_at));
  check(Dims(target.sizes()) == expected || (self.ndim() == 1 && target.numel() == 1),
        "{}: target must have shape {}, got {}", args.schema().full_name(), to_string(expected),
        to_string(target.sizes()));
  check(!weight || (weight->ndim() == 1 && weight->size(0) == self.size(classes_at)),
        "{}: weight must be a vector of one entry per class", args.schema().full_name());
  return expected;
}

Specs nll_forward(const Args& args, bool images) {
  const auto self = args.tensor(Arg::self);
  const Dims sizes = check_classes(args, self, args.tensor(Arg::target),
                                   args.optional_tensor(Arg::weight), images);
  return {reduced(args, self.dtype(), sizes), spec(self.dtype(), Dims{})};
}

Specs nll_backward(const Args& args, bool images) {
  const auto self = args.tensor(Arg::self);
  (void)check_classes(args, self, args.tensor(Arg::target), args.optional_tensor(Arg::weight),
                      images);
  return {spec(self.dtype(), self.sizes())};
}

}  // namespace

Specs binary_cross_entropy(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  check(Dims(self.sizes()) == Dims(args.tensor(Arg::target).sizes()),
        "binary_cross_entropy: input and target must have the same shape, got {} and {}",
        to_string(self.sizes()), to_string(args.tensor(Arg::target).sizes()));
  const TensorSpec loss = reduced(args, self.dtype(), self.sizes());
  return {loss.sizes == Dims(self.sizes()) ? spec_like(self.dtype(), self) : loss};
}

Specs binary_cross_entropy_backward(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  return {spec(self.dtype(), self.sizes())};
}

Specs huber_loss(const Args& args) {
  check(args.real(Arg::delta) > 0, "huber_loss: delta must be positive, got {}",
        args.real(Arg::delta));
  return pointwise_loss(args);
}
Specs huber_loss_backward(const Args& args) { return pointwise_loss_backward(args); }
Specs mse_loss(const Args& args) { return pointwise_loss(args); }
Specs mse_loss_backward(const Args& args) { return pointwise_loss_backward(args); }
Specs smooth_l1_loss(const Args& args) {
  check(args.real(Arg::beta) >= 0, "smooth_l1_loss: beta must not be negative, got {}",
        args.real(Arg::beta));
  return pointwise_loss(args);
}
Specs smooth_l1_loss_backward(const Args& args) { return pointwise_loss_backward(args); }

Specs nll_loss_forward(const Args& args) { return nll_forward(args, false); }
Specs nll_loss_backward(const Args& args) { return nll_backward(args, false); }
Specs nll_loss2d_forward(const Args& args) { return nll_forward(args, true); }
Specs nll_loss2d_backward(const Args& args) { return nll_backward(args, true); }

Specs multilabel_margin_loss_forward(const Args& args) {
  const auto self = args.tensor(Arg::self), target = args.tensor(Arg::target);
  check_floating(args, self);
  check(self.ndim() <= 2 && (self.ndim() == 0 || self.size(-1) > 0),
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
        to_string(self.sizes()));
  check(target.dtype() == DType::Int64 && Dims(target.sizes()) == Dims(self.sizes()),
        "multilabel_margin_loss: inconsistent target {} {} for input of size {}",
        name(target.dtype()), to_string(target.sizes()), to_string(self.sizes()));
  const Dims losses = self.ndim() == 2 ? Dims{self.size(0)} : Dims{};
  return {reduced(args, self.dtype(), losses), spec(self.dtype(), self.sizes())};
}

}  // namespace ocltensor::infer
