// Operators whose ATen form differs from the plugin's: arguments added or converted, outputs left
// out.
#include <ATen/ATen.h>

#include <cmath>

#include "register_kernels.h"
#include "repeated.h"
#include "runtime/generator.h"

namespace torch_ocl {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Of an expanded tensor's elements, which repeat others, one is filled.
PluginOperator plugin_fill("fill.Scalar_out");
at::Tensor& fill_scalar_(at::Tensor& self, const at::Scalar& value) {
  using Kernel = InPlace<at::_ops::fill__Scalar, plugin_fill>;
  if (!has_repeats(self)) return Kernel::call(self, value);
  at::Tensor once = unrepeated(self);
  Kernel::call(once, value);
  return self;
}

at::Tensor& zero_(at::Tensor& self) { return self.fill_(0); }

at::Tensor& fill_tensor_(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  return self.copy_(value.expand_as(self));
}

Three convolution_backward_overrideable(const at::Tensor& grad_output, const at::Tensor& input,
                                        const at::Tensor& weight, c10::SymIntArrayRef stride,
                                        c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                                        bool transposed, c10::SymIntArrayRef output_padding,
                                        c10::SymInt groups, std::array<bool, 3> output_mask) {
  static PluginOperator& backward = *new PluginOperator("convolution_backward.out");
  const int64_t groups_value = groups.guard_int(__FILE__, __LINE__);
  const int64_t bias_size = transposed ? weight.size(1) * groups_value : weight.size(0);
  auto outs =
      call_plugin<3>(backward, grad_output, input, weight, at::IntArrayRef(&bias_size, 1), stride,
                     padding, dilation, transposed, output_padding, groups_value, output_mask);
  for (size_t i = 0; i < 3; ++i)
    if (!output_mask[i]) outs[i] = at::Tensor();
  return {outs[0], outs[1], outs[2]};
}

Three batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                 const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
                 const std::optional<at::Tensor>& var, bool training, double momentum, double eps) {
  static PluginOperator& forward = *new PluginOperator("native_batch_norm.out");
  const auto outs =
      call_plugin<3>(forward, input, weight, bias, mean, var, training, momentum, eps);
  return {outs[0], outs[1], outs[2]};
}

Three batch_norm_legit(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                       const std::optional<at::Tensor>& bias, at::Tensor& mean, at::Tensor& var,
                       bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, mean, var, training, momentum, eps);
}

Three batch_norm_legit_no_stats(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                const std::optional<at::Tensor>& bias, bool training,
                                double momentum, double eps) {
  return batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

std::tuple<at::Tensor, at::Tensor> log_sigmoid_forward(const at::Tensor& self) {
  static PluginOperator& forward = *new PluginOperator("log_sigmoid.out");
  const auto outs = call_plugin<1>(forward, self);
  return {outs[0], at::empty({0}, self.options())};  // the buffer is the CPU kernel's alone
}

// ATen's buffer is used by the CPU kernel alone and may be empty; the plugin's formula does not
// read it.
at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor&) {
  static PluginOperator& backward = *new PluginOperator("log_sigmoid_backward.grad_input");
  std::array<at::Tensor, 1> result;
  if (try_plugin(backward, result, grad, self, self)) return result[0];
  // The CPU's kernel wants the buffer that its forward kernel fills.
  const at::Tensor buffer = self.abs().neg_().exp_();
  return call_plugin<1>(backward, grad, self, buffer)[0];
}

// Integers are clamped to truncated limits.
PluginOperator plugin_hardtanh("hardtanh.out");
at::Scalar limit(const at::Tensor& self, const at::Scalar& value) {
  if (!at::isIntegralType(self.scalar_type(), false)) return value;
  const int64_t whole = value.to<int64_t>();
  TORCH_CHECK(self.scalar_type() != at::kByte || whole >= 0,
              "cannot do hardtanh on an unsigned type with negative limits");
  return whole;
}
at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return Functional<at::_ops::hardtanh, plugin_hardtanh>::call(self, limit(self, low),
                                                               limit(self, high));
}
at::Tensor& hardtanh_(at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return InPlace<at::_ops::hardtanh_, plugin_hardtanh>::call(self, limit(self, low),
                                                             limit(self, high));
}
at::Tensor& hardtanh_out(const at::Tensor& self, const at::Scalar& low, const at::Scalar& high,
                         at::Tensor& out) {
  return Out<at::_ops::hardtanh_out, plugin_hardtanh>::call(self, limit(self, low),
                                                            limit(self, high), out);
}

// Both parts of a complex number are drawn, as in ATen: each has half of the variance.
PluginOperator plugin_normal("normal.out");
at::Tensor& normal_(at::Tensor& self, double mean, double std,
                    std::optional<at::Generator> generator) {
  if (!self.is_complex())
    return InPlace<at::_ops::normal_, plugin_normal>::call(self, mean, std, generator);
  at::view_as_real(self).normal_(mean, std / std::sqrt(2.0), generator);
  return self;
}
PluginOperator plugin_uniform("uniform.out");
at::Tensor& uniform_(at::Tensor& self, double from, double to,
                     std::optional<at::Generator> generator) {
  if (!self.is_complex())
    return InPlace<at::_ops::uniform_, plugin_uniform>::call(self, from, to, generator);
  at::view_as_real(self).uniform_(from, to, generator);
  return self;
}

// ATen gives dropout no generator, so the device's default one is used. manual_seed() reaches it
// only after it was created, which dropout() therefore does.
PluginOperator plugin_dropout("native_dropout.out");
std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p,
                                           std::optional<bool> train) {
  (void)default_generator(input.device().index());
  return Functional<at::_ops::native_dropout, plugin_dropout>::call(input, p, train);
}

// The plugin's kernel takes the arguments that training passes; other types are multiplied by ATen,
// with promotion.
PluginOperator plugin_dropout_backward("native_dropout_backward.out");
at::Tensor dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  if (!grad.is_floating_point() || mask.scalar_type() != at::kBool) return grad * mask * scale;
  return Functional<at::_ops::native_dropout_backward, plugin_dropout_backward>::call(grad, mask,
                                                                                      scale);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("normal_", TORCH_FN(normal_));
  m.impl("uniform_", TORCH_FN(uniform_));
  m.impl("zero_", TORCH_FN(zero_));
  m.impl("fill_.Scalar", TORCH_FN(fill_scalar_));
  m.impl("hardtanh", TORCH_FN(hardtanh));
  m.impl("hardtanh_", TORCH_FN(hardtanh_));
  m.impl("hardtanh.out", TORCH_FN(hardtanh_out));
  m.impl("native_dropout", TORCH_FN(dropout));
  m.impl("native_dropout_backward", TORCH_FN(dropout_backward));
  m.impl("fill_.Tensor", TORCH_FN(fill_tensor_));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward_overrideable));
  m.impl("_native_batch_norm_legit", TORCH_FN(batch_norm_legit));
  m.impl("_native_batch_norm_legit.no_stats", TORCH_FN(batch_norm_legit_no_stats));
  m.impl("log_sigmoid_backward", TORCH_FN(log_sigmoid_backward));
  m.impl("log_sigmoid_forward", TORCH_FN(log_sigmoid_forward));
}

}  // namespace torch_ocl
