// The loop nest of an elementwise operation over several strided operands, reduced to as few
// dimensions as their strides allow. Device-free.
#pragma once

#include <span>
#include <vector>

#include "ocltensor/dims.h"

namespace ocltensor {

// Dimension 0 is the innermost (fastest) one. strides[k] belongs to operand k, in elements.
struct IterationSpace {
  Dims sizes;
  std::vector<Dims> strides;
  int64_t numel = 1;
  size_t rank() const { return sizes.size(); }  // at least 1
};

// `strides` are the operands' strides for the common shape `sizes` (0 where an operand repeats);
// the first operands decide the order of dimensions (the output's smallest stride becomes the
// innermost). Dimensions of size 1 are dropped. Adjacent dimensions that every operand can step
// through with one stride are merged.
IterationSpace make_iteration(std::span<const int64_t> sizes, std::span<const Dims> strides);

// The strides that ATen gives a new elementwise result of shape `sizes`: the operands' strides if
// all agree; else dense strides with the dimensions in the operands' order, where the first operand
// with different strides in two dimensions decides their order (aten/src/ATen/TensorIterator.cpp:
// compute_fast_setup_type, reorder_dimensions). Empty: contiguous. `operands` are shapes and
// strides before broadcasting.
struct Strided {
  std::span<const int64_t> sizes, strides;
};
Dims elementwise_strides(std::span<const int64_t> sizes, std::span<const Strided> operands);

}  // namespace ocltensor
