// sort_rows for GPUs, by digits; nothing is empty.
#pragma once

#include "sort.h"

namespace ocltensor::opencl {

void sort_by_digits(const OpCall& call, TensorView in, SortOrder order, const TensorView* values,
                    TensorView indices);

}  // namespace ocltensor::opencl
