// Moving data: between devices, dtypes and strides.
#pragma once

#include "ocltensor/tensor.h"

namespace ocltensor::detail {

void copy(const Tensor& target, const Tensor& source, bool non_blocking);
void fill(const Tensor& target, Scalar value);
// Copies host memory in row-major order to a contiguous tensor, and waits for it.
void upload(const Tensor& target, const void* data);

}  // namespace ocltensor::detail
