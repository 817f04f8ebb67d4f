// Calls with complex64 tensors or complex numbers, apart from the other operators' paths, which
// know real types alone.
#pragma once

#include <complex>

#include "call.h"

namespace ocltensor::cpu {

using CpuFunction = void (*)(const CpuCall&);

using Number = std::complex<double>;
// The elements in row-major order; those of a real type have no imaginary part.
std::vector<Number> read_numbers(const View& view);
// To a real type goes the real part, to bool whether there is any.
void write_numbers(const View& view, const std::vector<Number>& numbers);

// Is there anything complex? Of checked arguments, and of checked outputs.
bool has_complex(const Args& args);
bool has_complex(std::span<const tb_tensor* const> outs);
// What runs such a call of an operator; nullptr: the CPU backend declines it. `plain` is its
// function for real types.
using ComplexFunction = void (*)(const CpuCall& call, CpuFunction plain);
ComplexFunction find_complex(const Operator& op);

}  // namespace ocltensor::cpu
