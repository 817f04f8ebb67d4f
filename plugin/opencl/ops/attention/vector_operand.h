// Operands of attention whose rows kernels read in vectors, and the strides of what they write.
#pragma once

#include <optional>

#include "fused.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::attention {

// A tensor of four dimensions whose rows are contiguous and begin at multiples of `vector`
// elements: the tensor itself, or a copy.
class VectorOperand {
 public:
  VectorOperand(const OpCall& call, TensorView tensor, int64_t vector);
  FlashTensor strides() const { return strides_; }
  operator MemoryRange() const;  // NOLINT: implicit on purpose

 private:
  TensorView tensor_;
  std::optional<Scratch> copy_;
  FlashTensor strides_;
};

// Zeros if it is not wanted.
FlashTensor strides_of(const OutputPlace& out);

// Of kernels forward with scores in registers, which write the log-sum-exp if `rows` is not 0.
FlashParams forward_params(const FusedProblem& p, const VectorOperand& query,
                           const VectorOperand& key, const VectorOperand& value);

}  // namespace ocltensor::opencl::attention
