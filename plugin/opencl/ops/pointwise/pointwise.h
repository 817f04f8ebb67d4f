// Pointwise operators: rows of base/pointwise.def with formulas in OpenCL C.
#pragma once

#include "base/pointwise.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::pointwise {

// The formula of a row of pointwise.def for a compute type; nullptr if this plugin has none.
const elementwise::Formula* find_formula(const PointwiseRow& row, DType compute);

std::span<const OpEntry> pointwise_operators();

}  // namespace ocltensor::opencl::pointwise
