// Combining sources in the order of their keys: long sequences, whose runs of equal keys are cut
// into chunks that all processors work at.
#pragma once

#include "index.h"

namespace ocltensor::opencl {

const char* refuse_runs(const OpCall& call, const Accumulation& what);     // why it cannot
const char* pass_over_runs(const OpCall& call, const Accumulation& what);  // why it is slower
void accumulate_runs(const OpCall& call, const Accumulation& what);

// What kernels of accumulations are specialised by, and a number in their parameters.
Defines accumulation_defines(const OpCall& call, const Accumulation& what);
uint64_t bits_of(Scalar value, DType type);

}  // namespace ocltensor::opencl
