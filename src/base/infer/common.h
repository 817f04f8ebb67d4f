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
// An output with the layout of a tensor of its shape, as ATen's elementwise results have it.
inline TensorSpec spec_like(DType type, const TensorView& tensor) {
  const Strided operand{tensor.sizes(), tensor.strides()};
  return {type, Dims(tensor.sizes()), elementwise_strides(tensor.sizes(), {&operand, 1})};
}
// An output that the call does not produce.
inline TensorSpec no_output(DType type) { return {type, Dims{0}, {}}; }
// Integers and bool add up in int64.
inline DType sum_type(DType type) { return is_integral(type, true) ? DType::Int64 : type; }

// Bit d is set where dimension d is reduced; no dimensions mean all. TB_E_INVALID for duplicates.
uint32_t dim_mask(std::span<const int64_t> dims, int64_t rank);
Dims reduced_sizes(std::span<const int64_t> sizes, uint32_t mask, bool keepdim);
// max, argmax and the like have no value for nothing: every reduced dimension must be non-empty.
void check_reducible(const Args& args, TensorView self, uint32_t mask);

// A spatial parameter of `count` entries: one value repeats, none gives `fallback`.
Dims spatial(const Args& args, Arg a, size_t count, std::span<const int64_t> fallback);
// ATen's pooling_output_shape.
int64_t pooled_size(int64_t input, int64_t kernel, int64_t padding, int64_t stride,
                    int64_t dilation, bool ceil_mode);
// The factors of a matrix or vector product, whatever its schema calls them.
struct Factors {
  Arg a, b;
};
Factors factors_of(const Args& args);
// The scale that a resampling was given for a dimension, counted from the last one: 0, 1 or 2.
std::optional<double> resampling_scale(const Args& args, size_t from_last);
void check_floating(const Args& args, TensorView tensor);
void check_floating_or_int64(const Args& args, TensorView tensor);
void check_same_type(const Args& args, TensorView a, TensorView b);
void check_index_type(const Args& args, TensorView index);

}  // namespace ocltensor::infer
