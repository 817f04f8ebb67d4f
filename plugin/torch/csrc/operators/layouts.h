// How results lie in memory where ATen promises more than contiguous ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "base/operators.h"

namespace torch_ocl {

// Sets the strides of inferred outputs by the inputs, in the order of the call.
using Layout = void (*)(c10::ArrayRef<const at::Tensor*> inputs,
                        std::span<ocltensor::TensorSpec> outs);

// The rule of a plugin's operator; null where inference says it all.
Layout layout_of(std::string_view name);

// Strides of a new tensor of the sizes that keeps the order of the dimensions of `like`, which has
// as many; empty: contiguous.
ocltensor::Dims strides_like(const at::Tensor& like, at::IntArrayRef sizes);

// Strides of an elementwise result of two tensors that broadcast to the sizes; empty: contiguous.
ocltensor::Dims strides_of_both(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef sizes);

// Resizes the tensor of an out form, with ATen's warning. One that has to change lies in memory as
// a new one would.
void resize_given(const at::Tensor& out, at::IntArrayRef sizes, const ocltensor::Dims& strides);

}  // namespace torch_ocl
