// Calls of pointwise operators that a thread repeats: contiguous tensors of one shape, with the
// same types and numbers as in an earlier call. Only their addresses and their size are looked at.
#pragma once

#include "call/op_call.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::pointwise {

// Runs the call if it repeats one that was remembered; returns whether it did.
bool run_repeated(const OpCall& call);
// Remembers a call that was launched as `what`, with `what.made` filled in.
void remember(const OpCall& call, const elementwise::ElementwiseLaunch& what);

}  // namespace ocltensor::opencl::pointwise
