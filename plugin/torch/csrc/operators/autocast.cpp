// Autocast for ocl: which operators run in the lower precision, which in float32, and which in the
// widest type of their arguments. The lists are ATen's own, those that it uses for CUDA; Fourier
// transforms are cast to float32 as for the CPU, since outside of autocast ATen refuses them in 16
// bits for all devices but CUDA.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>
#include <torch/version.h>

namespace torch_ocl {
namespace {

// ATen's macros use this name unqualified.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 13
using at::DimnameList;  // 2.13 has no named tensors
#endif
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

at::Tensor binary_cross_entropy_banned(const at::Tensor&, const at::Tensor&,
                                       const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
              "autocast: in float16 the sigmoid before them saturates. Use "
              "torch.nn.functional.binary_cross_entropy_with_logits or "
              "torch.nn.BCEWithLogitsLoss, which are safe, or leave autocast for this call.");
}

// Runs an operator of another library in float32; floating results get the type of the first
// argument, integers stay what they are.
void in_float32(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const size_t first = stack->size() - op.schema().arguments().size();
  const ScalarType type = (*stack)[first].toTensor().scalar_type();
  for (size_t i = first; i < stack->size(); ++i)
    if (c10::IValue& value = (*stack)[i]; value.isTensor())
      value = at::autocast::cached_cast(at::kFloat, value.toTensor(), at::kPrivateUse1);
  op.callBoxed(stack);
  for (size_t i = first; i < stack->size(); ++i)
    if (c10::IValue& value = (*stack)[i]; value.isTensor() && value.toTensor().is_floating_point())
      value = value.toTensor().to(type);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define OCL_KERNEL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(OCL_KERNEL)
#undef OCL_KERNEL
#define OCL_KERNEL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(OCL_KERNEL)
#undef OCL_KERNEL
#define OCL_KERNEL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(OCL_KERNEL)
#undef OCL_KERNEL
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define OCL_KERNEL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(OCL_KERNEL)
#undef OCL_KERNEL
#define OCL_KERNEL(op) KERNEL_PRIVATEUSEONE(op, fp32)
  OCL_KERNEL(fft_fft)
  OCL_KERNEL(fft_ifft)
  OCL_KERNEL(fft_fft2)
  OCL_KERNEL(fft_ifft2)
  OCL_KERNEL(fft_fftn)
  OCL_KERNEL(fft_ifftn)
  OCL_KERNEL(fft_rfft)
  OCL_KERNEL(fft_irfft)
  OCL_KERNEL(fft_rfft2)
  OCL_KERNEL(fft_irfft2)
  OCL_KERNEL(fft_rfftn)
  OCL_KERNEL(fft_irfftn)
  OCL_KERNEL(fft_hfft)
  OCL_KERNEL(fft_ihfft)
  OCL_KERNEL(fft_hfft2)
  OCL_KERNEL(fft_ihfft2)
  OCL_KERNEL(fft_hfftn)
  OCL_KERNEL(fft_ihfftn)
  OCL_KERNEL(stft)
#undef OCL_KERNEL
  KERNEL_PRIVATEUSEONE(stft, center, fp32)
  // Other devices cast the weights of cuDNN's and oneDNN's layers; here the operators themselves
  // are fused.
  KERNEL_PRIVATEUSEONE(lstm, input, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(lstm, data, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(gru, input, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(gru, data, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(rnn_tanh, input, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(rnn_tanh, data, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(rnn_relu, input, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(rnn_relu, data, lower_precision_fp)
  m.impl(TORCH_SELECTIVE_NAME("aten::binary_cross_entropy"), TORCH_FN(binary_cross_entropy_banned));
}

// What torchvision registers for CUDA.
TORCH_LIBRARY_IMPL(torchvision, AutocastPrivateUse1, m) {
  for (const char* name :
       {"nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&in_float32>());
}

}  // namespace torch_ocl
