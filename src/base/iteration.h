// The loop nest of an elementwise operation over several strided operands, reduced to as few
// dimensions as their strides allow. Device-free.
#pragma once

#include <span>
#include <vector>

#include "dims.h"

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
// innermost). Dimensions of size 1 vanish and neighbours that every operand steps through evenly
// are merged.
IterationSpace make_iteration(std::span<const int64_t> sizes, std::span<const Dims> strides);

}  // namespace ocltensor
