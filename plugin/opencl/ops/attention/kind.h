// What a problem of fused attention asks of kernels that keep scores in registers: type, mask,
// dropout.
#pragma once

#include <numbers>

#include "call/algorithms.h"
#include "kernels/defines.h"
#include "ops/attention/fused.h"

namespace ocltensor::opencl::attention {

// The masks that kernels are specialised for.
enum class MaskKind : uint8_t { None, Bool, Half, BFloat, Float };
inline constexpr size_t kMaskKinds = 5;

struct Kind {
  DType type;  // of the operands: Float16 or BFloat16
  bool causal, dropout;
  MaskKind mask;

  size_t index() const {
    return ((static_cast<size_t>(mask) * 2 + (dropout ? 1 : 0)) * 2 + (causal ? 1 : 0)) * 2 +
           (type == DType::BFloat16 ? 1 : 0);
  }
  DType mask_type() const;
  bool adds_numbers() const { return mask > MaskKind::Bool; }  // to the scores
  // What log-sum-exps are multiplied by for kernels on matrix units: LOG_WEIGHT
  // (kernels/include/attention_lanes.h).
  float sum_unit() const { return adds_numbers() ? 1.0F : std::numbers::log2e_v<float>; }
  // TYPE, M, MASK, CAUSAL and DROPOUT of kernels/include/attention.h.
  Defines defines() const;
};
inline constexpr size_t kKinds = kMaskKinds * 8;

// The kind of a problem of 16-bit operands, or why there is none.
Planned<Kind> kind_of(const OpCall& call, const FusedProblem& p);

}  // namespace ocltensor::opencl::attention
