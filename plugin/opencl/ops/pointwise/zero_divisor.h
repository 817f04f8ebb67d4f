// Division of integers by zero, which devices answer as they like.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::pointwise {

// A zero in `divisor` (integers) is raised by the next wait, as an error of the call's operator.
void report_zero_divisor(const OpCall& call, TensorView divisor);

}  // namespace ocltensor::opencl::pointwise
