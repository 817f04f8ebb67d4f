// What the inference functions share: output specifications, reduced shapes, pooling and
// convolution extents.
#pragma once

#include <array>

#include "../iteration.h"
#include "infer.h"

namespace ocltensor::infer {

inline TensorSpec spec(DType type, std::span<const int64_t> sizes) {
  return {type, Dims(sizes), {}};
}
// An output with the shape of `tensor` and the strides that ATen gives an elementwise result of it.
inline TensorSpec spec_like(DType type, const TensorView& tensor) {
  const Strided operand{tensor.sizes(), tensor.strides()};
  return {type, Dims(tensor.sizes()), elementwise_strides(tensor.sizes(), {&operand, 1})};
}
// An output that the call does not produce.
inline TensorSpec no_output(DType type) { return {type, Dims{0}, {}}; }
// The type of a sum: int64 for integers and bool.
inline DType sum_type(DType type) { return is_integral(type, true) ? DType::Int64 : type; }

// The dimensions that are reduced; no dimensions mean all. TB_E_INVALID for duplicates.
DimMask dim_mask(std::span<const int64_t> dims, int64_t rank);
Dims reduced_sizes(std::span<const int64_t> sizes, DimMask mask, bool keepdim);
// For max, argmax and the like, which have no value for no elements: throws TB_E_INVALID if a
// reduced dimension is empty.
void check_reducible(const Args& args, TensorView self, DimMask mask);

// A spatial parameter with `count` entries: a single value is repeated; an empty list means
// `fallback`.
Dims spatial(const Args& args, Arg a, size_t count, std::span<const int64_t> fallback);
// ATen's pooling_output_shape.
int64_t pooled_size(int64_t input, int64_t kernel, int64_t padding, int64_t stride,
                    int64_t dilation, bool ceil_mode);
// The factors' names in the schema of a matrix or vector product.
struct Factors {
  Arg a, b;
};
Factors factors_of(const Args& args);
// The scale argument of a resampling for a dimension, which is counted from the last: 0, 1 or 2.
std::optional<double> resampling_scale(const Args& args, size_t from_last);
void check_floating(const Args& args, TensorView tensor);
void check_floating_or_int64(const Args& args, TensorView tensor);
void check_same_type(const Args& args, TensorView a, TensorView b);
void check_index_type(const Args& args, TensorView index);

}  // namespace ocltensor::infer
