// Division that rounds up.
#pragma once

#include <cstdint>

namespace ocltensor::opencl {

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace ocltensor::opencl
