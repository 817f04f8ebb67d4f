// What batch and group normalisation share: the statistics of planes of a contiguous tensor, and
// their application.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::norm {

// A contiguous input as planes of `inner` elements: [samples, channels, inner]. In batch
// normalisation a plane's numbers depend on its channel only, in group normalisation on the sample
// too; `per_stat` neighbouring planes share a statistic.
struct Planes {
  int64_t samples, channels, inner;
  int64_t planes;    // channels, or samples * channels
  int64_t per_stat;  // 1, or channels / groups
  int64_t stats() const { return planes / per_stat; }
  bool by_channel() const { return planes == channels && per_stat == 1; }
  int64_t first_step() const { return per_stat * inner; }  // from one statistic to the next
  double count() const {                                   // elements that a statistic is made from
    return static_cast<double>(inner) * static_cast<double>(per_stat) *
           (by_channel() ? static_cast<double>(samples) : 1.0);
  }
};

// Of each statistic the mean (minus the statistic's first element, if that is finite) and the
// variance (divided by n), in the compute type.
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

// A vector of one number per channel, or none.
struct ChannelVector {
  std::optional<TensorView> tensor;
  int64_t stride() const { return tensor && tensor->ndim() > 0 ? tensor->strides()[0] : 0; }
  operator MemoryRange() const { return tensor; }  // NOLINT: implicit on purpose
};
ChannelVector channel_vector(const OpCall& call, Arg argument);
// The type that weight and bias share in the kernels; a mixture is declined.
DType weight_type(const OpCall& call, const ChannelVector& weight, const ChannelVector& bias,
                  DType fallback);

// Weight and bias of a call, in one type.
struct Affine {
  ChannelVector weight, bias;
};
Affine affine_operands(const OpCall& call);

struct NormNumbers {
  double momentum, eps;
};
// A forward pass over a contiguous input that is not empty. It writes `out`, contiguous as well,
// and the saved statistics, call.out(1) and out(2). `mean` and `variance` are the running
// statistics: with `train` they are updated where they are given, otherwise the input is normalised
// by them.
struct PlanesProblem {
  TensorView input, out;
  const ChannelVector &weight, &bias, &mean, &variance;
  const Planes& planes;
  bool train;
  NormNumbers numbers;
};
void planes_forward(const OpCall& call, const PlanesProblem& problem);

// What backward reads of each statistic: its mean, and its inverse deviation; where `eps` is given,
// `inverse` has the variance instead, to which eps is added.
struct SavedStatistics {
  TensorView mean, inverse;
  int64_t mean_stride, inverse_stride;
  std::optional<double> eps;
};
// The type of the gradients that a call asks for: which[0] input, [1] weight, [2] bias.
DType gradient_weight_type(const OpCall& call, const ChannelVector& weight,
                           const std::array<bool, 3>& which, DType fallback);
void weight_gradients(const OpCall& call, const GradientSums& s, TensorView inverse,
                      const ChannelVector& weight, const Planes& p, bool train,
                      const std::array<bool, 3>& which);
// A backward pass. All tensors are contiguous; `out`, the input's gradient, is unused if which[0]
// is false.
struct PlanesGradient {
  TensorView grad, input, out;
  SavedStatistics saved;
  const ChannelVector& weight;
  const Planes& planes;
  bool train;
  const std::array<bool, 3>& which;
};
void planes_backward(const OpCall& call, const PlanesGradient& problem);  // tensors may be empty

}  // namespace ocltensor::opencl::norm
