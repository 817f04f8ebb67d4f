// Strides of results over PyTorch's tensors. Rules of the plugin's operators are in base/layouts.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "ocltensor/dims.h"

namespace torch_ocl {

// Strides of an elementwise result of two tensors that broadcast to the sizes; empty: contiguous.
ocltensor::Dims strides_of_both(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef sizes);

// Resizes the tensor of an out form, with ATen's warning. A resized tensor has the strides of a new
// result.
void resize_given(const at::Tensor& out, at::IntArrayRef sizes, const ocltensor::Dims& strides);

}  // namespace torch_ocl
