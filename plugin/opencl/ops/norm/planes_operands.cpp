// The defines of the kernels of planes.
#include "planes_operands.h"

#include "kernels/norm.h"

namespace ocltensor::opencl::norm {

void define_operands(Defines& d, const OpCall& call, const PlanesProblem& problem) {
  const auto& [input, out, weight, bias, mean, variance, p, train, numbers] = problem;
  const DType compute = compute_type(input.dtype());
  d.type(define::X, input.dtype())
      .type(define::OUT, out.dtype())
      .type(define::W, weight_type(call, weight, bias, compute))
      .type(define::S, call.out(1).dtype())
      .type(define::R, mean.tensor ? mean.tensor->dtype() : compute)
      .set(define::HAS_WEIGHT, weight.tensor.has_value())
      .set(define::HAS_BIAS, bias.tensor.has_value())
      .set(define::HAS_RUNNING, train && mean.tensor.has_value())
      .set(define::TRAIN, train);
}

void define_operands(Defines& d, const OpCall& call, const PlanesGradient& problem) {
  const auto& [grad, input, out, saved, weight, p, train, which] = problem;
  d.type(define::X, input.dtype())
      .type(define::DY, grad.dtype())
      .type(define::OUT, out.dtype())
      .type(define::W, gradient_weight_type(call, weight, which, compute_type(input.dtype())))
      .type(define::S, saved.mean.dtype())
      .set(define::HAS_WEIGHT, weight.tensor.has_value())
      .set(define::HAS_WEIGHT_GRAD, which[1])
      .set(define::HAS_BIAS_GRAD, which[2])
      .set(define::TRAIN, train)
      .set(define::FROM_VARIANCE, saved.eps.has_value());
}

}  // namespace ocltensor::opencl::norm
