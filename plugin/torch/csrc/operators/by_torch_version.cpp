// Operators that not every supported PyTorch has: registered where it has them.
#include <torch/version.h>

#include "register_kernels.h"

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12
namespace torch_ocl {
namespace {

PluginOperator lanczos("_upsample_lanczos2d_aa.out");
PluginOperator lanczos_backward("_upsample_lanczos2d_aa_backward.grad_input");

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using Forward = Out<at::_ops::_upsample_lanczos2d_aa_out, lanczos>;
  using Backward = Out<at::_ops::_upsample_lanczos2d_aa_backward_grad_input, lanczos_backward>;
  m.impl("_upsample_lanczos2d_aa.out", TORCH_FN(Forward::call));
  m.impl("_upsample_lanczos2d_aa_backward.grad_input", TORCH_FN(Backward::call));
}

}  // namespace torch_ocl
#endif
