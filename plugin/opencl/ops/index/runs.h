// Combining sources in the order of their keys: long sequences, whose runs of equal keys are cut
// into chunks that all processors work at.
#pragma once

#include "index.h"

namespace ocltensor::opencl::index {

const char* refuse_runs(const OpCall& call, const Accumulation& what);  // why it cannot
// Why the rule prefers a sequence.
const char* pass_over_runs_cpu(const OpCall& call, const Accumulation& what);
const char* pass_over_runs_gpu(const OpCall& call, const Accumulation& what);
void accumulate_runs_cpu(const OpCall& call, const Accumulation& what);
void accumulate_runs_gpu(const OpCall& call, const Accumulation& what);

// What kernels of accumulations are specialised by, and a number in their parameters.
Defines accumulation_defines(const Accumulation& what);

}  // namespace ocltensor::opencl::index
