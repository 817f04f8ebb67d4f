// What a caller may have got wrong in describing an argument, before anything trusts it.
#pragma once

#include "ocltensor/dtype.h"

namespace ocltensor {

// Not NULL, of a known struct_size and element type, of at most TB_MAX_RANK dimensions
// (TB_UNSUPPORTED otherwise), with sizes and strides. Throws Error(TB_E_INVALID).
DType check_described(const tb_tensor* tensor);
// Of a tensor that is described: no size is negative, no sum or product of sizes and strides
// overflows, and where the storage is known the elements are inside.
void check_reach(const tb_tensor& tensor, DType dtype);
// A value that points to something does so, unless it has no entries.
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
