// Registers a kernel under the name that its at::_ops class has.
#pragma once

#include <ATen/Operators.h>

#include <string>

#include "kernel.h"

namespace torch_ocl {

template <typename Op, typename Kernel>
void register_kernel(torch::Library& library) {
  std::string name(static_cast<const char*>(Op::name) + sizeof("aten::") - 1);
  const std::string overload(static_cast<const char*>(Op::overload_name));
  if (!overload.empty()) name += "." + overload;
  library.impl(name.c_str(), TORCH_FN((Kernel::call)));
}

}  // namespace torch_ocl
