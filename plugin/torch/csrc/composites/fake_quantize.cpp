// Quantisation as training simulates it: numbers are rounded to those that integers of quant_min to
// quant_max stand for, x = (q - zero_point) * scale, and stay floating-point.
#include <cmath>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

void check_range(int64_t low, int64_t high) {
  TORCH_CHECK(low <= high, "`quant_min` should be less than or equal to `quant_max`.");
}
void check_zero_point(bool inside) {
  TORCH_CHECK(inside, "`zero_point` must be between `quant_min` and `quant_max`.");
}

// How integers stand for numbers: scale and zero point, tensors that broadcast over the numbers.
struct Grid {
  Tensor scale, zero_point;
  int64_t low, high;
};

Tensor wide(const Tensor& t) { return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat); }

// The integers of numbers before they are limited, as float32 or float64. A zero point that is not
// an integer is added before rounding.
Tensor quantize(const Tensor& self, const Grid& grid) {
  const Tensor steps = wide(self) * grid.scale.reciprocal();
  if (at::isIntegralType(grid.zero_point.scalar_type(), false))
    return steps.round().add_(grid.zero_point);
  return at::add(steps, grid.zero_point).round_();
}

// NaN becomes the lowest number, as the conversion to integers on CPUs makes it.
Tensor limited(const Tensor& integers, const Grid& grid) {
  return integers.nan_to_num(static_cast<double>(grid.low)).clamp_(grid.low, grid.high);
}

Tensor inside(const Tensor& integers, const Grid& grid) {
  return integers.ge(grid.low).logical_and_(integers.le(grid.high));
}

// The rounded numbers, which are float32 as in ATen also where `self` is float64, and which were
// within the range.
Two simulate(const Tensor& self, const Grid& grid) {
  const Tensor integers = quantize(self, grid);
  const Tensor steps = limited(integers, grid).sub_(grid.zero_point);
  const Tensor rounded = steps.to(at::kFloat).mul_(grid.scale);
  return {in_format_of(self, rounded.to(self.scalar_type())), inside(integers, grid)};
}

Grid uniform_grid(const Tensor& self, double scale, int64_t zero_point, int64_t low, int64_t high) {
  const auto number = self.options().dtype(at::kFloat);
  return {at::full({}, scale, number), at::full({}, zero_point, number.dtype(at::kInt)), low, high};
}

Two per_tensor(const Tensor& self, double scale, int64_t zero_point, int64_t low, int64_t high) {
  check_range(low, high);
  check_zero_point(low <= zero_point && zero_point <= high);
  return simulate(self, uniform_grid(self, scale, zero_point, low, high));
}

Two per_tensor_of_tensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                          const Tensor& enabled, int64_t low, int64_t high) {
  check_range(low, high);
  const Grid grid{scale.reshape({-1})[0], zero_point.reshape({-1})[0], low, high};
  const auto [rounded, mask] = simulate(self, grid);
  const Tensor on = enabled.reshape({-1})[0].ne(0);
  return {at::where(on, rounded, self), mask.logical_or(on.logical_not())};
}

// A tensor with a number per channel, in the shape that broadcasts over `self`.
Tensor along(const Tensor& self, const Tensor& per_channel, int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(axis)] = self.size(axis);
  return per_channel.view(shape);
}

int64_t check_channels(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                       int64_t axis) {
  axis = at::maybe_wrap_dim(axis, self.dim());
  TORCH_CHECK(scale.dim() == 1 && zero_point.dim() == 1, "scale and zero point need to be 1-D");
  TORCH_CHECK(scale.numel() == zero_point.numel() && scale.numel() == self.size(axis),
              "dimensions of scale and zero-point are not consistent with input tensor");
  return axis;
}

Two per_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                int64_t low, int64_t high) {
  const auto type = zero_point.scalar_type();
  TORCH_CHECK(scale.scalar_type() == at::kFloat || scale.scalar_type() == at::kBFloat16,
              "Scale must be Float or BFloat16, found ", scale.scalar_type());
  TORCH_CHECK(type == at::kInt || type == at::kFloat || type == at::kHalf,
              "Zero-point must be Int32, Float or Half, found ", type);
  axis = check_channels(self, scale, zero_point, axis);
  check_range(low, high);
  if (type == at::kInt && zero_point.numel() > 0)
    check_zero_point(zero_point.ge(low).logical_and_(zero_point.le(high)).all().item<bool>());
  return simulate(self, {along(self, wide(scale), axis), along(self, zero_point, axis), low, high});
}

// ---- with a scale and a zero point that are learned (S. K. Esser and others, "Learned step size
// quantization", 2020)
Tensor whole(const Tensor& zero_point, int64_t low, int64_t high) {
  return zero_point.round().clamp_(low, high).to(at::kInt);
}

Tensor learned_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                          int64_t low, int64_t high, double) {
  check_range(low, high);
  return std::get<0>(simulate(self, {scale[0], whole(zero_point, low, high)[0], low, high}));
}

Tensor learned_per_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                           int64_t axis, int64_t low, int64_t high, double) {
  axis = check_channels(self, scale, zero_point, axis);
  check_range(low, high);
  const Tensor at_zero = whole(zero_point, low, high);
  return std::get<0>(
      simulate(self, {along(self, scale, axis), along(self, at_zero, axis), low, high}));
}

// Gradients by self, scale and zero point, one per number.
Three slopes(const Tensor& grad, const Tensor& self, const Grid& grid, double factor) {
  const Tensor integers = quantize(self, grid);
  const Tensor within = inside(integers, grid);
  const Tensor limit = limited(integers, grid).sub_(grid.zero_point);
  const Tensor by_scale = at::where(within, (limit * grid.scale - self) / grid.scale, limit);
  const Tensor by_zero = at::where(within, 0, grid.scale.neg());
  return {grad * within, grad * by_scale * factor, grad * by_zero * factor};
}

Three learned_per_tensor_backward(const Tensor& grad, const Tensor& self, const Tensor& scale,
                                  const Tensor& zero_point, int64_t low, int64_t high,
                                  double factor) {
  if (self.numel() <= 0) return {self, scale, zero_point};
  check_range(low, high);
  const auto [by_self, by_scale, by_zero] =
      slopes(grad, self, {scale[0], whole(zero_point, low, high)[0], low, high}, factor);
  return {by_self, by_scale.sum().unsqueeze(0), by_zero.sum().unsqueeze(0)};
}

Three learned_per_channel_backward(const Tensor& grad, const Tensor& self, const Tensor& scale,
                                   const Tensor& zero_point, int64_t axis, int64_t low,
                                   int64_t high, double factor) {
  if (self.numel() <= 0) return {self, scale, zero_point};
  axis = check_channels(self, scale, zero_point, axis);
  check_range(low, high);
  const Grid grid{along(self, scale, axis), along(self, whole(zero_point, low, high), axis), low,
                  high};
  const auto [by_self, by_scale, by_zero] = slopes(grad, self, grid, factor);
  const auto per_channel = [&](const Tensor& t) {
    return t.movedim(axis, 0).reshape({t.size(axis), -1}).sum(1);
  };
  return {by_self, per_channel(by_scale), per_channel(by_zero)};
}

// ---- with a range that follows the numbers. Their extremes are found on the device; the range,
// scale and zero point follow from them by ATen's own arithmetic on the host.
Tensor extremes(const Tensor& self, int64_t axis, bool per_row) {
  const Tensor rows =
      per_row ? self.movedim(axis, 0).reshape({self.size(axis), -1}) : self.reshape({1, -1});
  const auto [least, most] = at::aminmax(rows, 1);
  return at::stack({least, most}, 1).to(at::kCPU, at::kFloat);
}

Two moving_average(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on,
                   Tensor& running_min, Tensor& running_max, Tensor& scale, Tensor& zero_point,
                   double constant, int64_t low, int64_t high, int64_t axis, bool per_row,
                   bool symmetric) {
  const Tensor observes = observer_on.cpu(), quantizes = fake_quant_on.cpu();
  const int64_t channels = per_row ? self.size(axis) : 1;
  const Tensor seen = observes.item().toInt() != 0 ? extremes(self, axis, per_row)
                                                   : at::zeros({channels, 2}, at::kFloat);
  Tensor* const device[] = {&running_min, &running_max, &scale, &zero_point};
  Tensor host[] = {running_min.cpu(), running_max.cpu(), scale.cpu(), zero_point.cpu()};
  at::_fused_moving_avg_obs_fq_helper(seen, observes, quantizes, host[0], host[1], host[2], host[3],
                                      constant, low, high, 0, per_row, symmetric);
  for (size_t i = 0; i < 4; ++i) {
    at::native::resize_output(*device[i], host[i].sizes());
    device[i]->copy_(host[i]);
  }
  if (quantizes.item().toInt() == 0)
    return {self.clone(), at::ones(self.sizes(), self.options().dtype(at::kBool))};
  if (per_row) return per_channel(self, scale, zero_point, axis, low, high);
  check_range(low, high);
  return simulate(self, {scale.reshape({-1})[0], zero_point.reshape({-1})[0], low, high});
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fake_quantize_per_tensor_affine_cachemask", TORCH_FN(per_tensor));
  m.impl("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
         TORCH_FN(per_tensor_of_tensors));
  m.impl("fake_quantize_per_channel_affine_cachemask", TORCH_FN(per_channel));
  m.impl("_fake_quantize_learnable_per_tensor_affine", TORCH_FN(learned_per_tensor));
  m.impl("_fake_quantize_learnable_per_channel_affine", TORCH_FN(learned_per_channel));
  m.impl("_fake_quantize_learnable_per_tensor_affine_backward",
         TORCH_FN(learned_per_tensor_backward));
  m.impl("_fake_quantize_learnable_per_channel_affine_backward",
         TORCH_FN(learned_per_channel_backward));
  m.impl("_fused_moving_avg_obs_fq_helper", TORCH_FN(moving_average));
}

}  // namespace torch_ocl
