// Operators that run on the CPU instead of the device: their counts, and the lack of float64 that
// causes some.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_ocl {

// Operator names with overload, and how often each fell back since the process began.
std::vector<std::pair<std::string, uint64_t>> fallback_counts();

// Whether the tensor is on a device that stores float64, but does not compute with it.
bool lacks_float64(const at::Tensor& tensor);

}  // namespace torch_ocl
