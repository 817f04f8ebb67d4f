// Counting of operators that ran on the CPU instead of the device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_ocl {

// Operator names with overload, and how often each fell back since the process began.
std::vector<std::pair<std::string, uint64_t>> fallback_counts();

}  // namespace torch_ocl
