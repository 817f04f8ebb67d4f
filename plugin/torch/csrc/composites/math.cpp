// ATen's smaller reductions, products and pointwise operators, composed of the plugin's.
#include <ATen/ExpandUtils.h>
#include <torch/library.h>
#include <torch/version.h>

#include <cmath>

#include "composite.h"
#include "operators/layouts.h"

namespace torch_ocl {
namespace {

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return self.eq(other).all().item<bool>();
}

// 16-bit types are computed in float32, in which a square does not overflow.
std::tuple<at::Tensor, at::Tensor> std_mean(const at::Tensor& self, at::OptionalIntArrayRef dim,
                                            const std::optional<at::Scalar>& correction,
                                            bool keepdim) {
  const bool narrow = self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16;
  const auto [var, mean] =
      at::var_mean(narrow ? self.to(at::kFloat) : self, dim, correction, keepdim);
  const at::Tensor std = var.sqrt();
  if (!narrow) return {std, mean};
  return {std.to(self.scalar_type()), mean.to(self.scalar_type())};
}

at::Tensor& norm_out(const at::Tensor& self, const std::optional<at::Scalar>& p,
                     at::IntArrayRef dim, bool keepdim, at::Tensor& out) {
  return at::linalg_vector_norm_out(out, self, p.value_or(2), dim, keepdim);
}
at::Tensor& norm_dtype_out(const at::Tensor& self, const std::optional<at::Scalar>& p,
                           at::IntArrayRef dim, bool keepdim, at::ScalarType dtype,
                           at::Tensor& out) {
  return at::linalg_vector_norm_out(out, self, p.value_or(2), dim, keepdim, dtype);
}

void check_parts(const at::Tensor& a, const at::Tensor& b) {
  for (const at::Tensor& part : {a, b})
    TORCH_CHECK(part.scalar_type() == at::kHalf || part.scalar_type() == at::kFloat ||
                    part.scalar_type() == at::kDouble,
                "Expected both inputs to be Half, Float or Double tensors but got ",
                a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of scalar type ",
              a.scalar_type(), " but got scalar type ", b.scalar_type(), " for second argument");
}
at::Tensor& complex_out(const at::Tensor& real, const at::Tensor& imag, at::Tensor& out) {
  check_parts(real, imag);
  TORCH_CHECK(out.scalar_type() == at::toComplexType(real.scalar_type()),
              "Expected object of scalar type ", at::toComplexType(real.scalar_type()),
              " but got scalar type ", out.scalar_type(), " for argument 'out'");
  const at::DimVector sizes = at::infer_size_dimvector(real.sizes(), imag.sizes());
  resize_given(out, sizes, strides_of_both(real, imag, sizes));
  const at::Tensor parts = at::view_as_real(out.is_conj() ? at::_conj(out) : out);
  parts.select(-1, 0).copy_(real);
  parts.select(-1, 1).copy_(out.is_conj() ? imag.neg() : imag);
  return out;
}
// The CPU's has it since 2.14.
constexpr bool kHasHalfPolar = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14;
at::Tensor& polar_out(const at::Tensor& abs, const at::Tensor& angle, at::Tensor& out) {
  check_parts(abs, angle);
  const c10::ScalarType type = abs.scalar_type();
  const bool half = type == at::kHalf;
  TORCH_CHECK_NOT_IMPLEMENTED(!half || kHasHalfPolar, "polar is not implemented for Half");
  const at::Tensor length = half ? abs.to(at::kFloat) : abs;
  const at::Tensor turn = half ? angle.to(at::kFloat) : angle;
  return complex_out(length.mul(turn.cos()).to(type), length.mul(turn.sin()).to(type), out);
}

at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}

at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) {
  return at::dot(self.is_complex() ? self.conj() : self, other);
}

// Numbers outside of the range, and NaN, are not counted.
at::Tensor histc(const at::Tensor& self, int64_t bins, const at::Scalar& min,
                 const at::Scalar& max) {
  TORCH_CHECK(bins > 0, "bins must be > 0");
  double low = min.toDouble();
  double high = max.toDouble();
  if (low == high && self.numel() > 0) {
    const auto [least, most] = at::aminmax(self);
    low = least.item<double>();
    high = most.item<double>();
  }
  if (low == high) low -= 1, high += 1;
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high,
              "] is not finite");
  TORCH_CHECK(low < high, "max must be larger than min");
  const at::Tensor flat = self.reshape({-1});
  const auto type = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor place = flat.to(type).sub(low).mul_(bins).div_(high - low);
  const at::Tensor inside = flat.ge(low).logical_and_(flat.le(high));
  // Counting in an integer type is exact, whatever the type of the result.
  at::Tensor counts = at::zeros({bins}, self.options().dtype(at::kInt));
  counts.scatter_add_(0, place.nan_to_num_(0).clamp_(0, bins - 1).to(at::kLong),
                      inside.to(at::kInt));
  return counts.to(self.scalar_type());
}
at::Tensor& histc_out(const at::Tensor& self, int64_t bins, const at::Scalar& min,
                      const at::Scalar& max, at::Tensor& out) {
  return deliver(out, self.histc(bins, min, max));
}

at::Tensor& renorm_out(const at::Tensor& self, const at::Scalar& p, int64_t dim,
                       const at::Scalar& maxnorm, at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  std::vector<int64_t> others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) others.push_back(d);
  const bool narrow = self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16;
  const at::Tensor norm = narrow ? at::linalg_vector_norm(self, p, others, true, at::kFloat)
                                 : at::linalg_vector_norm(self, p, others, true);
  const at::Tensor factor =
      at::where(norm.gt(maxnorm), norm.add(1e-7).reciprocal_().mul_(maxnorm), 1.0);
  return at::mul_out(out, self, factor.to(self.scalar_type()));
}

// Compares all pairs of elements and test elements while they are few, else searches in the sorted
// test elements.
constexpr int64_t kMostPairs = int64_t{1} << 20;

at::Tensor is_in(const at::Tensor& elements, const at::Tensor& tests) {
  if (tests.numel() == 0) return at::zeros(elements.sizes(), elements.options().dtype(at::kBool));
  const at::Tensor flat = tests.reshape({-1});
  if (elements.numel() * flat.numel() <= kMostPairs) return elements.unsqueeze(-1).eq(flat).any(-1);
  const at::ScalarType type = at::result_type(elements, tests);
  const at::Tensor sorted = std::get<0>(flat.to(type).sort(0));
  const at::Tensor wanted = elements.to(type).contiguous();
  const at::Tensor places =
      at::searchsorted(sorted, wanted.reshape({-1})).clamp_max_(flat.numel() - 1);
  return sorted.index_select(0, places).view(elements.sizes()).eq(wanted);
}

at::Tensor& isin_tensor_tensor_out(const at::Tensor& elements, const at::Tensor& tests, bool,
                                   bool invert, at::Tensor& out) {
  const at::Tensor found = is_in(elements, tests);
  return deliver(out, invert ? found.logical_not() : found);
}
at::Tensor& isin_tensor_scalar_out(const at::Tensor& elements, const at::Scalar& test, bool,
                                   bool invert, at::Tensor& out) {
  return invert ? at::ne_out(out, elements, test) : at::eq_out(out, elements, test);
}
at::Tensor& isin_scalar_tensor_out(const at::Scalar& element, const at::Tensor& tests, bool,
                                   bool invert, at::Tensor& out) {
  const at::Tensor found = tests.eq(element).any();
  return deliver(out, invert ? found.logical_not() : found);
}

at::Tensor& linalg_cross_out(const at::Tensor& self, const at::Tensor& other, int64_t dim,
                             at::Tensor& out) {
  const std::vector<int64_t> shape = at::infer_size(self.sizes(), other.sizes());
  const at::Tensor a = self.expand(shape);
  const at::Tensor b = other.expand(shape);
  const at::Tensor result =
      a.roll(-1, dim).mul_(b.roll(-2, dim)).addcmul_(a.roll(-2, dim), b.roll(-1, dim), -1);
  return deliver(out, result);
}

// The matrices of the batches, placed side by side, make it one product.
at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                       const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0),
              "batch1 and batch2 must have same number of batches, got ", batch1.size(0), " and ",
              batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (",
              batch1.size(1), "x", batch1.size(2), " and ", batch2.size(1), "x", batch2.size(2),
              ")");
  const int64_t inner = batch1.size(0) * batch1.size(2);
  const at::Tensor left = batch1.transpose(0, 1).reshape({batch1.size(1), inner});
  return at::addmm_out(out, self, left, batch2.reshape({inner, batch2.size(2)}), beta, alpha);
}
at::Tensor& addbmm_(at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                    const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(self.dim() == 2 && batch1.dim() == 3 && batch2.dim() == 3 &&
                  self.size(0) == batch1.size(1) && self.size(1) == batch2.size(2),
              "self tensor does not match matmul output shape");
  return addbmm_out(self, batch1, batch2, beta, alpha, self);
}
at::Tensor addbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                  const at::Scalar& beta, const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, self.options());
  return addbmm_out(self, batch1, batch2, beta, alpha, out);
}

// For integer types the host computes the numbers in double: rounding must not turn 10^3 into 999.
at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base,
                         at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) out.resize_({steps});
  if (!out.is_floating_point())
    return out.copy_(
        at::logspace(start, end, steps, base, at::TensorOptions(at::kCPU).dtype(out.scalar_type()))
            .view(out.sizes()));
  const auto type = out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor exponents = at::linspace(start, end, steps, out.options().dtype(type));
  return out.copy_(at::pow(at::Scalar(base), exponents).view(out.sizes()));
}

// Takes the exponent's bits from the number; subnormal numbers are scaled up first.
std::tuple<at::Tensor&, at::Tensor&> frexp_out(const at::Tensor& self, at::Tensor& mantissa,
                                               at::Tensor& exponent) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "torch.frexp() only supports floating-point dtypes");
  const bool wide = self.scalar_type() == at::kDouble;
  const int64_t digits = wide ? 52 : 23;
  const int64_t mask = wide ? 0x7ff : 0xff;
  const int64_t bias = wide ? 1022 : 126;
  const at::Tensor number = self.to(wide ? at::kDouble : at::kFloat);
  const at::Tensor small = number.abs().lt(std::ldexp(1.0, static_cast<int>(-bias)));
  const at::Tensor scaled = at::where(small, number.mul(std::ldexp(1.0, 60)), number);
  const at::Tensor bits = scaled.view(wide ? at::kLong : at::kInt);
  const at::Tensor power = bits.bitwise_right_shift(digits).bitwise_and_(mask);
  // Zero has the smallest exponent, infinity and NaN the largest.
  const at::Tensor special = power.add(1).bitwise_and_(mask).le(1);
  const at::Tensor fraction =
      bits.bitwise_and(~(mask << digits)).bitwise_or_(bias << digits).view(number.scalar_type());
  deliver(mantissa, at::where(special, number, fraction));
  deliver(exponent, power.sub_(bias).add_(small, -60).masked_fill_(special, 0));
  return {mantissa, exponent};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("equal", TORCH_FN(equal));
  m.impl("std_mean.correction", TORCH_FN(std_mean));
  m.impl("norm.out", TORCH_FN(norm_out));
  m.impl("norm.dtype_out", TORCH_FN(norm_dtype_out));
  m.impl("complex.out", TORCH_FN(complex_out));
  m.impl("polar.out", TORCH_FN(polar_out));
  m.impl("trace", TORCH_FN(trace));
  m.impl("vdot", TORCH_FN(vdot));
  m.impl("histc", TORCH_FN(histc));
  m.impl("histc.out", TORCH_FN(histc_out));
  m.impl("renorm.out", TORCH_FN(renorm_out));
  m.impl("isin.Tensor_Tensor_out", TORCH_FN(isin_tensor_tensor_out));
  m.impl("isin.Tensor_Scalar_out", TORCH_FN(isin_tensor_scalar_out));
  m.impl("isin.Scalar_Tensor_out", TORCH_FN(isin_scalar_tensor_out));
  m.impl("linalg_cross.out", TORCH_FN(linalg_cross_out));
  m.impl("addbmm", TORCH_FN(addbmm));
  m.impl("addbmm_", TORCH_FN(addbmm_));
  m.impl("addbmm.out", TORCH_FN(addbmm_out));
  m.impl("logspace.out", TORCH_FN(logspace_out));
  m.impl("frexp.Tensor_out", TORCH_FN(frexp_out));
}

}  // namespace torch_ocl
