// Batch and group normalisation on GPUs, one or two kernels per direction: norm/planes_gpu*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl::norm {

// A reason if planes are too short for neighbouring work-items to read neighbouring elements; else
// nullptr.
const char* refuse_planes_gpu(const Planes& p);

// The widest vectors, up to 16 bytes, at whose multiples runs of `length` elements begin and end.
int64_t vector_width(int64_t length, std::initializer_list<TensorView> tensors);

// As planes_forward() in planes.h.
void planes_forward_gpu(const OpCall& call, const PlanesProblem& problem);

// Writes all gradients that are asked for, the input's (call.out(0)) among them.
void planes_backward_gpu(const OpCall& call, const PlanesGradient& problem);

}  // namespace ocltensor::opencl::norm
