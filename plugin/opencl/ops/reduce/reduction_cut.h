// How the algorithms of reductions divide their work, or why they refuse it.
#pragma once

#include "base/iteration.h"
#include "call/algorithms.h"
#include "reduction.h"

namespace ocltensor::opencl::reduce {

constexpr size_t kOperands = 6;  // a, b, c, d, out0, out1

// A reduction as two loop nests: `kept` walks over the outputs, `reduced` over the elements of one
// output.
struct Problem {
  const ReduceLaunch& what;
  IterationSpace kept, reduced;  // strides by operand; `reduced` has inputs only
  bool columns = false;          // neighbouring outputs are closer in memory than elements of a sum
};
// How the work is cut, which is the plan of every algorithm: members of ReduceParams, and the
// global size.
struct Cut {
  int64_t kept, count, chunk, inner_chunk, inner_pieces, kept_per_item;
  int32_t lanes;
  int64_t pieces;
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
