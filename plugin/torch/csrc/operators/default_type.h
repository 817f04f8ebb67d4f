// torch.set_default_dtype(): the type that integers get beside numbers with a fraction, and in
// functions like sin. The plugin knows float32 alone, as the ABI has no default type.
#pragma once

#include "arguments.h"
#include "base/operators.h"

namespace torch_ocl {

inline bool default_is_float32() { return c10::get_default_dtype_as_scalartype() == at::kFloat; }

// Where another default decides a pointwise call's type, gives one of the settled arguments that
// type: integer tensors are converted, and without any a number becomes a tensor on `device`.
void use_default_type(const ocltensor::Operator& op, Arguments& in, c10::DeviceIndex device);

}  // namespace torch_ocl
