// Combines sources in the order of their keys: for long sequences, whose runs of equal keys are cut
// into chunks, so that all processors work on them.
#pragma once

#include "index.h"

namespace ocltensor::opencl::index {

const char* refuse_runs(const OpCall& call, const Accumulation& what);  // why it cannot
// Why the rule prefers `accumulate.sequence`.
const char* pass_over_runs_cpu(const OpCall& call, const Accumulation& what);
const char* pass_over_runs_gpu(const OpCall& call, const Accumulation& what);
void accumulate_runs_cpu(const OpCall& call, const Accumulation& what);
void accumulate_runs_gpu(const OpCall& call, const Accumulation& what);

// What kernels of accumulations are specialised by.
Defines accumulation_defines(const Accumulation& what);

}  // namespace ocltensor::opencl::index
