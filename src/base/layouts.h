// The strides of results where ATen promises more than contiguous ones: what the rules of the
// column `layout` in operators.def say. They must agree with PyTorch's meta functions, by which
// tracers predict the strides that compiled code asserts. Device-free.
#pragma once

#include <span>

#include "operators.h"

namespace ocltensor {

// Sets the strides of inferred outputs by the operator's rule. Nothing for Contiguous, and for
// Columns, where the size is still to come.
void lay_out(const Operator& op, const Args& args, std::span<TensorSpec> outs);

// "LikeFirst"
const char* name(LayoutRule rule);

}  // namespace ocltensor
