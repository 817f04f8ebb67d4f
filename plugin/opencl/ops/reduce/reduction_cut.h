// How the algorithms of reductions cut their work: what they take, and why not.
#pragma once

#include "base/iteration.h"
#include "call/algorithms.h"
#include "reduction.h"

namespace ocltensor::opencl::reduce {

constexpr size_t kOperands = 6;  // a, b, c, d, out0, out1

// A reduction as two nests: `kept` walks the outputs, `reduced` what makes one of them.
struct Problem {
  const ReduceLaunch& what;
  IterationSpace kept, reduced;  // strides by operand; `reduced` has inputs only
  bool columns = false;  // whether neighbouring outputs lie closer than neighbours of their sums
};
// How the work is cut, the plan of every algorithm: parts of ReduceParams, and the range.
struct Cut {
  int64_t kept, count, chunk, inner_chunk, inner_splits, kept_per_item;
  int32_t lanes;
  int64_t splits;
  Grid global;
};

// CPU drivers.
Planned<Cut> plan_narrow_columns(const OpCall& call, const Problem& p);
Planned<Cut> plan_columns(const OpCall& call, const Problem& p);
Planned<Cut> plan_short_rows(const OpCall& call, const Problem& p);
Planned<Cut> plan_rows(const OpCall& call, const Problem& p);
// GPUs.
Planned<Cut> plan_gpu(const OpCall& call, const Problem& p);

}  // namespace ocltensor::opencl::reduce
