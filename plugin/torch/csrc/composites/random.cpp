// ATen's distributions, made by transforming the plugin's normal and uniform numbers.
#include <ATen/ExpandUtils.h>
#include <torch/library.h>

#include <cmath>
#include <numbers>

#include "composite.h"
#include "operators/fallback.h"

namespace torch_ocl {
namespace {

using Generator = std::optional<at::Generator>;

void check_std(double std) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
}
void check_std(const at::Tensor& std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  TORCH_CHECK(std.numel() == 0 || std.min().ge(0).item<bool>(),
              "normal expects all elements of std >= 0.0");
}

at::Tensor& normal_tensor_float_out(const at::Tensor& mean, double std, Generator generator,
                                    at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, mean.sizes());
  return out.normal_(0, std, generator).add_(mean);
}
at::Tensor& normal_float_tensor_out(double mean, const at::Tensor& std, Generator generator,
                                    at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, std.sizes());
  return out.normal_(0, 1, generator).mul_(std).add_(mean);
}
at::Tensor& normal_tensor_tensor_out(const at::Tensor& mean, const at::Tensor& std,
                                     Generator generator, at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), std.sizes()));
  return out.normal_(0, 1, generator).mul_(std).add_(mean);
}

at::Tensor normal_tensor_float(const at::Tensor& mean, double std, Generator generator) {
  at::Tensor out = at::empty_like(mean, at::MemoryFormat::Contiguous);
  return normal_tensor_float_out(mean, std, std::move(generator), out);
}
at::Tensor normal_float_tensor(double mean, const at::Tensor& std, Generator generator) {
  at::Tensor out = at::empty_like(std, at::MemoryFormat::Contiguous);
  return normal_float_tensor_out(mean, std, std::move(generator), out);
}
at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& std,
                                Generator generator) {
  at::Tensor out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  return normal_tensor_tensor_out(mean, std, std::move(generator), out);
}

// Whether a transform runs in the tensor's type; 16-bit types are too coarse for it: they are
// computed in float32 and rounded once.
bool is_wide_enough(const at::Tensor& self) {
  return self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble;
}
at::Tensor draws_for(const at::Tensor& self) {
  const auto type = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::empty(self.sizes(), self.options().dtype(type));
}

at::Tensor& log_normal_(at::Tensor& self, double mean, double std, Generator generator) {
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  if (is_wide_enough(self)) return self.normal_(mean, std, std::move(generator)).exp_();
  return self.copy_(draws_for(self).normal_(mean, std, std::move(generator)).exp_());
}

at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, Generator generator) {
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Cauchy distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.scalar_type());
  at::Tensor draws = is_wide_enough(self) ? self : draws_for(self);
  // Uniform over half a circle, both ends excluded: beyond pi / 2, as rounded, the tangent changes
  // its sign.
  const double end = draws.scalar_type() == at::kDouble ? 0x1p-52 : 0x1p-23;
  draws.uniform_(0, 1, std::move(generator)).clamp_(end, 1 - end);
  draws.sub_(0.5).mul_(std::numbers::pi).tan_().mul_(sigma).add_(median);
  return draws.is_same(self) ? self : self.copy_(draws);
}

// The number of trials up to the first success: log of a uniform number to the base 1 - p.
at::Tensor& geometric_(at::Tensor& self, double p, Generator generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  at::Tensor draws = draws_for(self);
  draws.uniform_(0, 1, std::move(generator));
  return self.copy_(draws.neg_().log1p_().div_(std::log1p(-p)).ceil_().clamp_min_(1));
}

// Gamma numbers divided by their sum (L. Devroye, "Non-uniform random variate generation", 1986,
// XI.4), in the widest type: numbers of small shapes are below the smallest float32.
at::Tensor sample_dirichlet(const at::Tensor& self, Generator generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "\"dirichlet\" not implemented for '",
              self.scalar_type(), "'");
  const auto type = lacks_float64(self) ? at::kFloat : at::kDouble;
  const at::Tensor numbers = at::_standard_gamma(self.to(type), std::move(generator));
  const at::Tensor shares = numbers / numbers.sum(-1, true);
  const double least = self.scalar_type() == at::kHalf     ? 0x1p-14
                       : self.scalar_type() == at::kDouble ? 0x1p-1022
                                                           : 0x1p-126;
  return shares.clamp_min(least).to(self.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("normal.Tensor_float_out", TORCH_FN(normal_tensor_float_out));
  m.impl("normal.float_Tensor_out", TORCH_FN(normal_float_tensor_out));
  m.impl("normal.Tensor_Tensor_out", TORCH_FN(normal_tensor_tensor_out));
  m.impl("normal.Tensor_float", TORCH_FN(normal_tensor_float));
  m.impl("normal.float_Tensor", TORCH_FN(normal_float_tensor));
  m.impl("normal.Tensor_Tensor", TORCH_FN(normal_tensor_tensor));
  m.impl("_sample_dirichlet", TORCH_FN(sample_dirichlet));
  m.impl("log_normal_", TORCH_FN(log_normal_));
  m.impl("cauchy_", TORCH_FN(cauchy_));
  m.impl("geometric_", TORCH_FN(geometric_));
}

}  // namespace torch_ocl
