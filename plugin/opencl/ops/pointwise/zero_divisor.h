// Division of integers by zero, whose result OpenCL leaves undefined: reported as an error.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::pointwise {

// If `divisor` (integers) has a zero, the next wait for the stream raises an error of the call's
// operator.
void report_zero_divisor(const OpCall& call, TensorView divisor);

}  // namespace ocltensor::opencl::pointwise
