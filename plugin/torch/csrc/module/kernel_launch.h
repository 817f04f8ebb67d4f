// Launches of custom kernels from Python: a callable object with the kernel, and the range if it is
// fixed. Arguments are read where Python has them, by position; a launch makes no Python object.
#pragma once

#include <pybind11/pybind11.h>

#include "plan/kernel.h"

namespace torch_ocl {

// A PreparedKernel (torch_ocl/_C.pyi). `threads` None: one work-item for each element of the first
// tensor; `group` None: the driver chooses. ValueError for anything but one to three sizes.
pybind11::object prepare_kernel(KernelReference kernel, const pybind11::object& threads,
                                const pybind11::object& group);
// What is prepared in such an object, or in its method `enqueue`; null if it is none.
const KernelReference* prepared_kernel(PyObject* object);
const LaunchRange* prepared_range(PyObject* object);
void bind_prepared_kernels(pybind11::module_& module);

}  // namespace torch_ocl
