// An elementwise launch in numbers: the loop nest as parameters of a kernel, and its division into
// work-items.
#pragma once

#include "base/iteration.h"
#include "elementwise.h"
#include "pointwise_params.h"

namespace ocltensor::opencl::elementwise {

// A loop nest. One of more dimensions than the kernels take runs as several launches over its
// outermost ones.
struct Nest {
  IterationSpace space;
  int64_t offsets[5] = {};  // elements, per operand
};

struct Work {
  Grid global{1, 1, 1}, local{1, 1, 1};
  int64_t per_group = 0;  // elements of a work-group, where an item takes a fixed number of them
};

// Rows for each work-item, for CPUs; the parameters say how many.
void divide_rows(PointwiseParams& p, Work& work);
// Elements for each work-item, for GPUs; the defines say how many.
void divide_elements(const Capabilities& caps, TensorView out, const ElementwiseLaunch& what,
                     const Nest& nest, const PointwiseParams& p, Defines& d, Work& work);

PointwiseParams params_of(const ElementwiseLaunch& what, const Nest& nest);
ImaginaryParams imaginary_parts_of(const ElementwiseLaunch& what);
// The part of a tensor's memory that operand `k` of the nest accesses; 0 is the output.
MemoryRange reached(const Nest& nest, TensorView tensor, size_t k);

}  // namespace ocltensor::opencl::elementwise
