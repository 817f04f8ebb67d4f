// What batch and group normalisation share: statistics of planes of a contiguous tensor, and
// applying them.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::norm {

// A contiguous input as planes of `inner` elements: [samples, channels, inner]. For batch
// normalisation a plane's numbers depend on its channel only, with groups on the sample too;
// `per_stat` neighbouring ones share statistics.
struct Planes {
  int64_t samples, channels, inner;
  int64_t planes;    // channels, or samples * channels
  int64_t per_stat;  // 1, or channels / groups
  int64_t stats() const { return planes / per_stat; }
  bool by_channel() const { return planes == channels && per_stat == 1; }
  int64_t first_step() const { return per_stat * inner; }  // between first elements of statistics
  double count() const {                                   // elements behind a statistic
    return static_cast<double>(inner) * static_cast<double>(per_stat) *
           (by_channel() ? static_cast<double>(samples) : 1.0);
  }
};

// Mean (less the first element, where that is finite) and variance (over n) of each statistic, in
// `compute`.
struct Statistics {
  Scratch offset, variance;
};
Statistics statistics(const OpCall& call, TensorView input, const Planes& p, DType compute);

// Per plane, the sums of dy and of dy * (x - mean).
struct GradientSums {
  Scratch sums, dots;
};
GradientSums room_for_sums(const OpCall& call, const Planes& p, DType compute);
GradientSums gradient_sums(const OpCall& call, TensorView grad, TensorView input, TensorView mean,
                           const Planes& p, DType compute);

// A vector of one number a channel, or nothing.
struct ChannelVector {
  std::optional<TensorView> tensor;
  int64_t stride() const { return tensor && tensor->ndim() > 0 ? tensor->strides()[0] : 0; }
  operator MemoryRange() const { return tensor; }  // NOLINT: implicit on purpose
};
ChannelVector channel_vector(const OpCall& call, Arg argument);
// weight, bias and gradients share a type in the kernels; declines a mixture.
DType weight_type(const OpCall& call, const ChannelVector& weight, const ChannelVector& bias,
                  DType fallback);

struct NormNumbers {
  double momentum, eps;
};
// Of a contiguous input that is not empty: call.out(0) and the saved statistics, out(1) and out(2).
// `mean` and `variance` are running statistics: with `train` they are kept where they are given,
// else they are what normalises.
struct PlanesProblem {
  TensorView input;
  const ChannelVector &weight, &bias, &mean, &variance;
  const Planes& planes;
  bool train;
  NormNumbers numbers;
};
void planes_forward(const OpCall& call, const PlanesProblem& problem);

// What backward takes of each statistic: its mean, and its inverse deviation or, where `eps` is
// given, its variance, to which that is added.
struct SavedStatistics {
  TensorView mean, inverse;
  int64_t mean_stride, inverse_stride;
  std::optional<double> eps;
};
// The gradients that a call asks for: which[0] input, [1] weight, [2] bias.
DType gradient_weight_type(const OpCall& call, const ChannelVector& weight,
                           const std::array<bool, 3>& which, DType fallback);
void weight_gradients(const OpCall& call, const GradientSums& s, TensorView inverse,
                      const ChannelVector& weight, const Planes& p, bool train,
                      const std::array<bool, 3>& which);
// Of contiguous tensors.
struct PlanesGradient {
  TensorView grad, input;
  SavedStatistics saved;
  const ChannelVector& weight;
  const Planes& planes;
  bool train;
  const std::array<bool, 3>& which;
};
void planes_backward(const OpCall& call, const PlanesGradient& problem);  // empty ones, too

}  // namespace ocltensor::opencl::norm
