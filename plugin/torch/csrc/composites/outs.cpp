// Out forms and older names of operators that ocl has under another name.
#include <cmath>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Scalar;
using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;

Tensor adaptive_avg_pool2d(const Tensor& self, at::IntArrayRef size) {
  return at::adaptive_avg_pool2d(self, size);
}
Tensor adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self) {
  return at::_adaptive_avg_pool3d_backward(grad, self);
}
Tensor mvlgamma(const Tensor& self, int64_t p) { return at::mvlgamma(self, p); }
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return self.narrow(dim, start, length);
}
Tensor& eye_out(int64_t n, Tensor& out) { return at::eye_out(out, n, n); }

Two log_sigmoid_forward(const Tensor& self) { return at::log_sigmoid_forward(self); }
Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& self, const Tensor& buffer) {
  return at::log_sigmoid_backward(grad, self, buffer);
}

Two aminmax(const Tensor& self) { return at::aminmax(self); }
Two aminmax_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return at::aminmax(self, dim, keepdim);
}

// Unlike arange, it has its end.
Tensor& range_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  const double from = start.toDouble(), by = step.toDouble(), to = end.toDouble();
  TORCH_CHECK(by > 0 || by < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  TORCH_CHECK((by > 0 && to >= from) || (by < 0 && to <= from),
              "upper bound and lower bound inconsistent with step sign");
  const auto count = static_cast<int64_t>((to - from) / by + 1);
  if (out.numel() != count) out.resize_({count});
  const bool whole = at::isIntegralType(out.scalar_type(), false);
  const auto type = whole ? at::kLong : out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  Tensor numbers = at::arange(count, out.options().dtype(type));
  if (whole)
    numbers.mul_(step.toLong()).add_(start.toLong());
  else
    numbers.mul_(step).add_(start);
  return out.copy_(numbers.view(out.sizes()));
}

// ---- a sum without its negative numbers
Tensor add_relu(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return at::add(self, other, alpha).relu_();
}
Tensor& add_relu_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  return self.add_(other, alpha).relu_();
}
Tensor& add_relu_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  return at::add_out(out, self, other, alpha).relu_();
}
Tensor add_relu_scalar(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return at::add(self, other, alpha).relu_();
}
Tensor& add_relu_scalar_(Tensor& self, const Scalar& other, const Scalar& alpha) {
  return self.add_(other, alpha).relu_();
}

// ---- the older form of dropout, with the probability of keeping a number
Tensor masked_scale(const Tensor& self, const Tensor& mask, double scale) {
  return self.mul(mask.to(self.scalar_type())).mul_(scale);
}
Two fused_dropout(const Tensor& self, double p, std::optional<at::Generator> generator) {
  Tensor mask = at::empty_like(self, self.options().dtype(at::kByte));
  mask.bernoulli_(p, std::move(generator));
  return {masked_scale(self, mask, 1 / p), mask};
}

// ---- assertions about numbers on the device. They wait for it: the message is the caller's, which
// a report that comes after the call could not hold.
void assert_message(const Tensor& self, std::string_view message) {
  TORCH_CHECK(self.is_nonzero(), message.empty()
                                     ? "Expected Tensor with single nonzero value, but got zero"
                                     : std::string(message));
}
void assert_nonzero(const Tensor& self) { assert_message(self, ""); }
Tensor assert_with_token(const Tensor& self, std::string_view message, const Tensor& token) {
  assert_message(self, message);
  return token.clone();
}
Tensor make_token(std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                  std::optional<at::Device> device, std::optional<bool> pin_memory,
                  std::optional<at::MemoryFormat> format) {
  return at::empty({}, dtype, layout, device, pin_memory, format);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  register_out<adaptive_avg_pool2d>(m, "adaptive_avg_pool2d.out");
  register_out<adaptive_avg_pool3d_backward>(m, "adaptive_avg_pool3d_backward.grad_input");
  register_out<mvlgamma>(m, "mvlgamma.out");
  register_out<narrow_copy>(m, "narrow_copy.out");
  m.impl("eye.out", TORCH_FN(eye_out));
  m.impl("range.out", TORCH_FN(range_out));
  register_out<log_sigmoid_forward>(m, "log_sigmoid_forward.output");
  register_out<log_sigmoid_backward>(m, "log_sigmoid_backward.grad_input");
  m.impl("_aminmax", TORCH_FN(aminmax));
  m.impl("_aminmax.dim", TORCH_FN(aminmax_dim));
  m.impl("_add_relu.Tensor", TORCH_FN(add_relu));
  m.impl("_add_relu_.Tensor", TORCH_FN(add_relu_));
  m.impl("_add_relu.out", TORCH_FN(add_relu_out));
  m.impl("_add_relu.Scalar", TORCH_FN(add_relu_scalar));
  m.impl("_add_relu_.Scalar", TORCH_FN(add_relu_scalar_));
  m.impl("_masked_scale", TORCH_FN(masked_scale));
  m.impl("_fused_dropout", TORCH_FN(fused_dropout));
  m.impl("_assert_async", TORCH_FN(assert_nonzero));
  m.impl("_assert_async.msg", TORCH_FN(assert_message));
  m.impl("_functional_assert_async.msg", TORCH_FN(assert_with_token));
  m.impl("_make_dep_token", TORCH_FN(make_token));
}

}  // namespace torch_ocl
