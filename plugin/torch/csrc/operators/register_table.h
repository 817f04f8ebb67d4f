// Registers the kernels of OCL_TABLE. Included once by each of register_nn.cpp, _pointwise and
// _tensor, so that the tables are compiled in parallel.
#include "register_kernels.h"

namespace torch_ocl {
namespace {

#define OCL_KERNEL(form, op, plugin_name) PluginOperator plugin_##op(plugin_name);
#include OCL_TABLE
#undef OCL_KERNEL

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define OCL_KERNEL(form, op, plugin_name) \
  register_kernel<at::_ops::op, form<at::_ops::op, plugin_##op>>(m);
#include OCL_TABLE
#undef OCL_KERNEL
}

}  // namespace torch_ocl
#undef OCL_TABLE
