// Registers the kernels of pointwise.def.
#include "register_kernels.h"

namespace torch_ocl {
namespace {

#define OCL_KERNEL(form, op, plugin_name) PluginOperator plugin_##op(plugin_name);
#include "pointwise.def"
#undef OCL_KERNEL

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define OCL_KERNEL(form, op, plugin_name) \
  register_kernel<at::_ops::op, form<at::_ops::op, plugin_##op>>(m);
#include "pointwise.def"
#undef OCL_KERNEL
}

}  // namespace torch_ocl
