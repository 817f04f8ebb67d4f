// Calls with complex64 tensors or complex numbers, apart from the other operators' paths, which
// know real types alone.
#pragma once

#include "call.h"

namespace ocltensor::cpu {

using CpuFunction = void (*)(const CpuCall&);

// Is there anything complex? Of checked arguments, and of checked outputs.
bool has_complex(const Args& args);
bool has_complex(std::span<const tb_tensor* const> outs);
// What runs such a call of an operator; nullptr: the CPU backend declines it. `plain` is its
// function for real types.
using ComplexFunction = void (*)(const CpuCall& call, CpuFunction plain);
ComplexFunction find_complex(const Operator& op);

}  // namespace ocltensor::cpu
