// The convolutions of ATen's older names: all are cases of `convolution`.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::IntArrayRef;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// `kernel` repeats what the weight's shape says.
void check_kernel(const Tensor& weight, IntArrayRef kernel) {
  TORCH_CHECK(
      weight.dim() == static_cast<int64_t>(kernel.size()) + 2 && weight.sizes().slice(2) == kernel,
      "expected a weight of kernel size ", kernel, ", got ", weight.sizes());
}

Tensor dilated(const Tensor& self, const Tensor& weight, IntArrayRef kernel,
               const MaybeTensor& bias, IntArrayRef stride, IntArrayRef padding,
               IntArrayRef dilation) {
  check_kernel(weight, kernel);
  const std::vector<int64_t> zeros(kernel.size(), 0);
  const BelowAutocast guard;
  return at::convolution(self, weight, bias, stride, padding, dilation, false, zeros, 1);
}

Tensor undilated(const Tensor& self, const Tensor& weight, IntArrayRef kernel,
                 const MaybeTensor& bias, IntArrayRef stride, IntArrayRef padding) {
  const std::vector<int64_t> ones(kernel.size(), 1);
  return dilated(self, weight, kernel, bias, stride, padding, ones);
}

Tensor depthwise(const Tensor& self, const Tensor& weight, IntArrayRef kernel,
                 const MaybeTensor& bias, IntArrayRef stride, IntArrayRef padding,
                 IntArrayRef dilation) {
  check_kernel(weight, kernel);
  const std::vector<int64_t> zeros(kernel.size(), 0);
  const int64_t groups = self.size(self.dim() - static_cast<int64_t>(kernel.size()) - 1);
  const BelowAutocast guard;
  return at::convolution(self, weight, bias, stride, padding, dilation, false, zeros, groups);
}
const Tensor& depthwise_out(const Tensor& self, const Tensor& weight, IntArrayRef kernel,
                            const MaybeTensor& bias, IntArrayRef stride, IntArrayRef padding,
                            IntArrayRef dilation, const Tensor& out) {
  Tensor target = out;
  deliver(target, depthwise(self, weight, kernel, bias, stride, padding, dilation));
  return out;
}

Tensor transposed(const Tensor& self, const Tensor& weight, IntArrayRef kernel,
                  const MaybeTensor& bias, IntArrayRef stride, IntArrayRef padding,
                  IntArrayRef output_padding, IntArrayRef dilation) {
  check_kernel(weight, kernel);
  const BelowAutocast guard;
  return at::convolution(self, weight, bias, stride, padding, dilation, true, output_padding, 1);
}

Three undilated_backward(const Tensor& grad, const Tensor& self, const Tensor& weight,
                         IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                         std::array<bool, 3> mask) {
  check_kernel(weight, kernel);
  const std::vector<int64_t> bias{weight.size(0)}, ones(kernel.size(), 1), zeros(kernel.size(), 0);
  return at::convolution_backward(grad, self, weight, bias, stride, padding, ones, false, zeros, 1,
                                  mask);
}
std::tuple<Tensor&, Tensor&, Tensor&> undilated_backward_out(const Tensor& grad, const Tensor& self,
                                                             const Tensor& weight,
                                                             IntArrayRef kernel, IntArrayRef stride,
                                                             IntArrayRef padding, Tensor& by_input,
                                                             Tensor& by_weight, Tensor& by_bias) {
  const std::array<bool, 3> mask{by_input.defined(), by_weight.defined(), by_bias.defined()};
  const auto [input, weights, bias] =
      undilated_backward(grad, self, weight, kernel, stride, padding, mask);
  if (mask[0]) deliver(by_input, input);
  if (mask[1]) deliver(by_weight, weights);
  if (mask[2]) deliver(by_bias, bias);
  return {by_input, by_weight, by_bias};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_slow_conv2d_forward", TORCH_FN(undilated));
  register_out<undilated>(m, "_slow_conv2d_forward.output");
  m.impl("_slow_conv2d_backward.output_mask", TORCH_FN(undilated_backward));
  m.impl("_slow_conv2d_backward.grad_input", TORCH_FN(undilated_backward_out));
  m.impl("slow_conv3d_forward", TORCH_FN(undilated));
  register_out<undilated>(m, "slow_conv3d_forward.output");
  m.impl("slow_conv_dilated2d", TORCH_FN(dilated));
  m.impl("slow_conv_dilated3d", TORCH_FN(dilated));
  register_out<transposed>(m, "slow_conv_transpose2d.out");
  m.impl("slow_conv_transpose3d", TORCH_FN(transposed));
  register_out<transposed>(m, "slow_conv_transpose3d.out");
  m.impl("_conv_depthwise2d", TORCH_FN(depthwise));
  m.impl("_conv_depthwise2d.out", TORCH_FN(depthwise_out));
  m.impl("conv_depthwise3d", TORCH_FN(depthwise));
}

}  // namespace torch_ocl
