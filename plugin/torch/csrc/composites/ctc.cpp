// Connectionist temporal classification with lengths in tensors, which the host has to read.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Numbers = std::vector<int64_t>;

Numbers numbers_of(const Tensor& lengths) {
  const Tensor host = lengths.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}
Two ctc_loss_tensor(const Tensor& probs, const Tensor& targets, const Tensor& inputs,
                    const Tensor& lengths, int64_t blank, bool zero_infinity) {
  return at::_ctc_loss(probs, targets, numbers_of(inputs), numbers_of(lengths), blank,
                       zero_infinity);
}
Tensor ctc_loss_tensor_backward(const Tensor& grad, const Tensor& probs, const Tensor& targets,
                                const Tensor& inputs, const Tensor& lengths, const Tensor& loss,
                                const Tensor& alphas, int64_t blank, bool zero_infinity) {
  return at::_ctc_loss_backward(grad, probs, targets, numbers_of(inputs), numbers_of(lengths), loss,
                                alphas, blank, zero_infinity);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_ctc_loss.Tensor", TORCH_FN(ctc_loss_tensor));
  m.impl("_ctc_loss_backward.Tensor", TORCH_FN(ctc_loss_tensor_backward));
}

}  // namespace torch_ocl
