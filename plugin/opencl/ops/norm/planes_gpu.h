// Batch and group normalisation on GPUs, in one or two kernels each way: norm/planes_gpu*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl::norm {

// Why not: planes of channels are too short for neighbouring work-items to read neighbouring
// elements.
const char* refuse_planes_gpu(const Planes& p);

// As planes_forward() in planes.h.
void planes_forward_gpu(const OpCall& call, const PlanesProblem& problem);

// All gradients that are asked for, the input's (call.out(0)) among them.
void planes_backward_gpu(const OpCall& call, const PlanesGradient& problem);

}  // namespace ocltensor::opencl::norm
