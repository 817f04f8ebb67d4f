// Batch and group normalisation on GPUs, in one or two kernels each way: norm/planes_gpu*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl {

// Whether the device is a GPU, and planes of channels are long enough for neighbouring work-items
// to read neighbouring elements.
bool planes_fit_gpu(const OpCall& call, const Planes& p);

// As planes_forward() in planes.h.
void planes_forward_gpu(const OpCall& call, TensorView input, const ChannelVector& weight,
                        const ChannelVector& bias, const ChannelVector& mean,
                        const ChannelVector& variance, const Planes& p, bool train,
                        NormNumbers numbers);

// What backward takes of each statistic: its mean, and its inverse deviation or, where `eps` is
// given, its variance, to which that is added.
struct SavedStatistics {
  TensorView mean, inverse;
  int64_t mean_stride, inverse_stride;
  std::optional<double> eps;
};
// All gradients that `which` asks for, the input's (call.out(0)) among them.
void planes_backward_gpu(const OpCall& call, TensorView grad, TensorView input,
                         const SavedStatistics& saved, const ChannelVector& weight, const Planes& p,
                         bool train, const std::array<bool, 3>& which);

}  // namespace ocltensor::opencl
