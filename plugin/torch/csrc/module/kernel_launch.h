// Launches of custom kernels from Python: a callable object with the kernel, and the range if it is
// fixed. Arguments are read where Python has them, by position; a launch makes no Python object.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "runtime/plugin.h"

namespace torch_ocl {

// A kernel of a library that lives as long as this does.
struct KernelReference {
  std::shared_ptr<const void> library;
  tb_kernel kernel;
  std::string name;
  c10::DeviceIndex device;
};

// A PreparedKernel (torch_ocl/_C.pyi). `threads` None: one work-item for each element of the first
// tensor; `group` None: the driver chooses. ValueError for anything but one to three sizes.
pybind11::object prepare_kernel(KernelReference kernel, const pybind11::object& threads,
                                const pybind11::object& group);
void bind_prepared_kernels(pybind11::module_& module);

}  // namespace torch_ocl
