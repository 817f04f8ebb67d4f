// Calls with complex tensors or numbers. They have functions of their own, because the
// others compute with real types alone.
#pragma once

#include <complex>

#include "call.h"

namespace ocltensor::cpu {

using CpuFunction = void (*)(const CpuCall&);

using Number = std::complex<double>;
// The elements in row-major order; those of a real type have no imaginary part.
std::vector<Number> read_numbers(const View& view);
// A real type gets the real part; bool gets whether the number is not 0.
void write_numbers(const View& view, const std::vector<Number>& numbers);

// True if an argument or an output is complex. Both were checked before.
bool has_complex(const Args& args);
bool has_complex(std::span<const tb_tensor* const> outs);
// The function that runs such a call of an operator; nullptr: the CPU backend declines it. `plain`
// is the operator's function for real types.
using ComplexFunction = void (*)(const CpuCall& call, CpuFunction plain);
ComplexFunction find_complex(const Operator& op);

}  // namespace ocltensor::cpu
