// Batch normalisation of channels_last tensors on GPUs: norm/channels_last_gpu*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl::norm {

// A reason if `p` is not a matrix of samples and channels; else nullptr.
const char* refuse_channels_last_gpu(const Planes& p);

// As planes_forward() in planes.h.
void channels_last_forward_gpu(const OpCall& call, const PlanesProblem& problem);

// Writes all gradients that are asked for.
void channels_last_backward_gpu(const OpCall& call, const PlanesGradient& problem);

}  // namespace ocltensor::opencl::norm
