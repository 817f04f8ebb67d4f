// Batch and group normalisation on CPU drivers, one kernel per direction: norm/planes_cpu*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl::norm {

// A reason if there are too few statistics to keep the processors busy, or planes are too short for
// vectors; else nullptr.
const char* refuse_planes_cpu(const OpCall& call, const Planes& p);

// As planes_forward() in planes.h.
void planes_forward_cpu(const OpCall& call, const PlanesProblem& problem);

// Writes the input's gradient, call.out(0), and with groups the sums of each plane for the weights'
// gradients; without groups those gradients themselves. `problem.saved` is contiguous, without eps.
void planes_backward_cpu(const OpCall& call, const PlanesGradient& problem);

}  // namespace ocltensor::opencl::norm
