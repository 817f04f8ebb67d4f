// The last sweep of normalisation by planes: norm/planes_apply_*.cl.
#pragma once

#include "planes.h"

namespace ocltensor::opencl::norm {

// With `grad` null out = (input - shift) * scale + bias, else out is the gradient; the numbers come
// from `table` (norm/planes_channels.cl).
struct Application {
  TensorView input;
  const TensorView* grad;
  const Scratch& table;
  TensorView out;
  const Planes& p;
  DType compute;
  bool channels_inner() const { return p.inner == 1 && p.by_channel(); }
};
void apply_cpu(const OpCall& call, const Application& a);
void apply_gpu(const OpCall& call, const Application& a);

}  // namespace ocltensor::opencl::norm
