// Strides of results where ATen promises more than contiguous ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "base/operators.h"

namespace torch_ocl {

// Sets the strides of inferred outputs from the inputs, which are in the order of the call.
using Layout = void (*)(c10::ArrayRef<const at::Tensor*> inputs,
                        std::span<ocltensor::TensorSpec> outs);

// The rule of a plugin's operator; null if inference already gives the right strides.
Layout layout_of(std::string_view name);

// Whether the result, whose size the plugin finds out, is a matrix with contiguous columns.
bool has_columns(std::string_view name);

// Strides for a new tensor of these sizes with the order of dimensions of `like`, which has as many
// dimensions; empty: contiguous.
ocltensor::Dims strides_like(const at::Tensor& like, at::IntArrayRef sizes);

// Strides of an elementwise result of two tensors that broadcast to the sizes; empty: contiguous.
ocltensor::Dims strides_of_both(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef sizes);

// Resizes the tensor of an out form, with ATen's warning. A resized tensor has the strides of a new
// result.
void resize_given(const at::Tensor& out, at::IntArrayRef sizes, const ocltensor::Dims& strides);

}  // namespace torch_ocl
