// What the kernels of planes, of CPU drivers and of GPUs, are told of their operands.
#pragma once

#include "call/scalar_bits.h"
#include "planes.h"

namespace ocltensor::opencl::norm {

// Their types, and which there are.
void define_operands(Defines& d, const OpCall& call, const PlanesProblem& problem);
void define_operands(Defines& d, const OpCall& call, const PlanesGradient& problem);

// Strides and numbers, in a kernel's parameters.
template <typename Params>
void set_operands(Params& n, const PlanesProblem& problem) {
  const DType compute = compute_type(problem.input.dtype());
  n.weight_stride = problem.weight.stride();
  n.bias_stride = problem.bias.stride();
  n.mean_stride = problem.mean.stride();
  n.variance_stride = problem.variance.stride();
  n.momentum = scalar_bits(problem.numbers.momentum, compute);
  n.eps = scalar_bits(problem.numbers.eps, compute);
}
template <typename Params>
void set_operands(Params& n, const PlanesGradient& problem) {
  const SavedStatistics& saved = problem.saved;
  n.weight_stride = problem.weight.stride();
  n.mean_stride = saved.mean_stride;
  n.variance_stride = saved.inverse_stride;
  n.eps = scalar_bits(saved.eps.value_or(0), compute_type(problem.input.dtype()));
}

}  // namespace ocltensor::opencl::norm
