// The lack of float64, for which some operators run on the CPU instead of the device. The counts of
// such operators are public: fallback_counts().
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_ocl {

// Whether the tensor is on a device that stores float64, but does not compute with it.
bool lacks_float64(const at::Tensor& tensor);

}  // namespace torch_ocl
