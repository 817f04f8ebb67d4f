// What reductions and scans of complex numbers share.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::reduce {

// A tensor converted to another type, or itself if it has that type. A complex one becomes its
// moduli (Float32) or flags (Bool: not zero).
class Converted {
 public:
  Converted(const OpCall& call, TensorView self, DType type);
  TensorView view() const { return local_.view(); }

 private:
  std::vector<Scratch> memory_;
  LocalTensor local_;
};

void multiply_in_place(const OpCall& call, TensorView target, TensorView factor);
// Products of complex numbers over the dimensions of `mask`.
void complex_product(const OpCall& call, TensorView out, TensorView self, DimMask mask);

}  // namespace ocltensor::opencl::reduce
