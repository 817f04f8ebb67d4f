// Type promotion: ATen's rules (c10/core/ScalarType.h promoteTypes and at::result_type).
#pragma once

#include <span>

#include "value.h"

namespace ocltensor {

// The smallest type that both convert to, by ATen's table (int64 and float16 give float16).
DType promote(DType a, DType b);

// Result type of operands in three classes: tensors with dimensions, 0-dimensional tensors, Python
// numbers. A lower class only matters where it is of a higher category (integer < floating <
// complex).
class PromotionState {
 public:
  void add(TensorView tensor);
  void add(Scalar number);
  void add(const Args& args, Arg a);  // a tensor or a number
  DType result() const;               // TB_E_INVALID if nothing was added

 private:
  void add(int cls, DType type);
  bool seen_[3] = {};
  DType type_[3] = {};
};

// True if a result of type `from` may be written to an output of type `to` (c10::canCast).
bool can_cast(DType from, DType to);

}  // namespace ocltensor
