// Batch and group normalisation on CPU drivers, in one kernel each way: norm/planes_cpu*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl {

// Whether there are enough statistics to keep the processors busy, and planes long enough for
// vectors.
bool planes_fit_cpu(const OpCall& call, const Planes& p);

// As planes_forward() in planes.h.
void planes_forward_cpu(const OpCall& call, TensorView input, const ChannelVector& weight,
                        const ChannelVector& bias, const ChannelVector& mean,
                        const ChannelVector& variance, const Planes& p, bool train,
                        NormNumbers numbers);

// The input's gradient, call.out(0), and with groups the sums of each plane for the weights'
// gradients; without groups those gradients themselves.
void planes_backward_cpu(const OpCall& call, TensorView grad, TensorView input, TensorView mean,
                         TensorView inverse, const ChannelVector& weight, const Planes& p,
                         bool train, const std::array<bool, 3>& which);

}  // namespace ocltensor::opencl
