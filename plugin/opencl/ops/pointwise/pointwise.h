// Pointwise operators: rows of base/pointwise.def with formulas in OpenCL C.
#pragma once

#include "base/pointwise.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::pointwise {

// The formula of a row of pointwise.def for a compute type; nullptr if this plugin has none.
const elementwise::Formula* find_formula(const PointwiseRow& row, DType compute);
// The same for numbers of floating point, by the row's name; it must have one.
const elementwise::Formula& formula_of(const std::string& row);

std::span<const OpEntry> pointwise_operators();

}  // namespace ocltensor::opencl::pointwise
