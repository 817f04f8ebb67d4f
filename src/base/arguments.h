// Checks of a caller's description of an argument, made before any other code uses it.
#pragma once

#include "ocltensor/dtype.h"

namespace ocltensor {

// Throws Error(TB_E_INVALID) unless the tensor is not NULL, of a known struct_size, with sizes and
// strides; TB_UNSUPPORTED for an unknown element type and for more than TB_MAX_RANK dimensions.
DType check_described(const tb_tensor* tensor);
// For a tensor that passed check_described(): throws Error(TB_E_INVALID) if a size is negative, if
// a sum or product of sizes and strides overflows, or if elements have no memory or lie outside of
// a known storage. This is the one place that stands between a freed storage and the device: a
// kernel that got address 0 would end the process, and on some drivers the device.
void check_reach(const tb_tensor& tensor, DType dtype);
// False if a value that must point to something is NULL. A list without entries may be.
inline bool points_somewhere(const tb_value& value) {
  switch (value.tag) {
    case TB_COMPLEX: return value.as.p != nullptr;
    case TB_STRING:
    case TB_TENSOR_LIST:
    case TB_INT_LIST:
    case TB_FLOAT_LIST:
    case TB_BOOL_LIST: return value.count == 0 || value.as.p != nullptr;
    default: return true;
  }
}

}  // namespace ocltensor
