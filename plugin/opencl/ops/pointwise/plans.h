// The plans that a thread has made for calls of pointwise operators, found by the call's types,
// numbers and layout, so that a call that comes again is not resolved again.
#pragma once

#include "call/op_call.h"
#include "ops/elementwise/plan.h"

namespace ocltensor::opencl::pointwise {

// A plan, and the arguments whose addresses its operands take.
struct PlannedCall {
  elementwise::PointwisePlan plan;
  std::array<int8_t, 4> arguments;  // of a, b, c, d by position; -1: a number, or absent
};

// Everything about a call that decides its plan, as words: operator, settings, stream, types,
// numbers, short texts; whether all tensors are flat (then not their sizes), else all sizes and
// strides; and on GPUs how addresses are aligned. Calls with complex numbers, long texts, very many
// or very large dimensions have no key, nor have those without elements, or whose choice is not the
// default or is to be printed.
class PlanKey {
 public:
  explicit PlanKey(const OpCall& call);
  bool is_valid() const { return count_ != 0; }
  std::span<const uint64_t> words() const { return {words_, count_}; }
  uint64_t hash() const { return hash_; }
  int64_t elements() const { return elements_; }  // of the output

 private:
  static constexpr size_t kMostWords = 96;
  bool add(uint64_t word);  // false if there is no room
  bool add_argument(const tb_value& value, uint64_t alignment_mask);
  bool add_layout(const tb_tensor& tensor);
  bool fill(const OpCall& call);

  size_t count_ = 0;  // 0: no key
  uint64_t hash_ = 0;
  int64_t elements_ = 0;
  uint64_t words_[kMostWords];  // the first count_ have values
};

// This thread's plan for the call, which has such a key, or nullptr.
PlannedCall* find_plan(const PlanKey& key);
// Runs it.
void repeat(const OpCall& call, const PlanKey& key, PlannedCall& planned);
// Keeps a plan that has run if its call comes for the second time: those with ever new numbers cost
// nothing, and drive out no other.
void keep_plan(const PlanKey& key, PlannedCall&& planned);

}  // namespace ocltensor::opencl::pointwise
