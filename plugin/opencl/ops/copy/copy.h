// Copies, fills and tensors made from nothing, and the views that other families make of tensors.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"
#include "pointwise_params.h"

namespace ocltensor::opencl::copy {

// The integer type of the same width, or complex128 for 16 bytes: copies within a type move bits,
// so that NaN payloads survive.
DType carrier_type(DType type);
void fill_tensor(const OpCall& call, TensorView target, Scalar value);
// A view of `tensor` with other sizes and strides, `offset` elements further on.
LocalTensor view_of(TensorView tensor, const Dims& sizes, const Dims& strides, int64_t offset);
// A view of the part [start, start + length) of one dimension.
LocalTensor narrow(TensorView tensor, int64_t dim, int64_t start, int64_t length);
// Views with the dimensions in another order, and with one dimension where there is none.
LocalTensor permuted(TensorView tensor, const Dims& order);
LocalTensor at_least_1d(TensorView tensor);
// Views of a complex tensor: its real (0) or imaginary (1) part, and both parts along a new last
// dimension.
LocalTensor part_of(TensorView tensor, int which);
LocalTensor as_real(TensorView tensor);

// A copy; the source broadcasts to the target. Both or none are complex, and the device has both
// types, or the target is bool.
struct Problem {
  TensorView target, source;
};
// transpose.cpp: copies within a type that swap dimensions, for CPU drivers and for GPUs.
Planned<PointwiseParams> plan_transpose(const OpCall& call, const Problem& copy);
void run_transpose(const OpCall& call, const Problem& copy, const PointwiseParams& p);
Planned<PointwiseParams> plan_transpose_gpu(const OpCall& call, const Problem& copy);
void run_transpose_gpu(const OpCall& call, const Problem& copy, const PointwiseParams& p);
const AlgorithmFamily& copy_algorithms();

// soft_double.cpp, for devices without float64. as_moved: the tensor, or its bits as int64 where
// the device lacks its type. lacks_float64: whether a conversion from a to b needs the functions
// below: a conversion, which broadcasts its source, and a fill.
LocalTensor as_moved(const OpCall& call, TensorView tensor);
bool lacks_float64(const OpCall& call, DType a, DType b);
void convert_float64(const OpCall& call, TensorView target, TensorView source);
void fill_float64(const OpCall& call, TensorView target, double value);

std::span<const OpEntry> copy_operators();
extern const std::span<const OpEntry> kCreateOperators;  // create.cpp
extern const std::span<const OpEntry> kPadOperators;     // pad.cpp

}  // namespace ocltensor::opencl::copy
