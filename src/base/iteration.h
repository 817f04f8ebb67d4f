// The loop nest of an elementwise operation over several strided operands, reduced to as few
// dimensions as their strides allow. Device-free.
#pragma once

#include <span>
#include <vector>

#include "ocltensor/dims.h"

namespace ocltensor {

struct Strided {
  std::span<const int64_t> sizes, strides;
};
// Whether the elements fill their extent, each position once, in whatever order and direction the
// dimensions lie.
bool is_dense(const Strided& tensor);
// Whether the tensors are contiguous and of one shape: one loop goes through all of them, and no
// dimension has to be looked at.
bool is_flat(std::span<const Strided> tensors);

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

// For kernels that take few dimensions: calls run(part, offsets) for each position in the outermost
// dimensions beyond `most`, with the nest of the others, and where it begins in each operand, in
// elements. Nothing is copied where there are not more.
template <typename Run>
void for_each_part(const IterationSpace& space, size_t most, Run&& run) {
  std::vector<int64_t> offsets(space.strides.size(), 0);
  if (space.rank() <= most) return run(space, std::span<const int64_t>(offsets));
  IterationSpace part = space;
  while (part.rank() > most) {
    part.numel /= std::max<int64_t>(part.sizes.back(), 1);
    part.sizes.pop_back();
    for (Dims& s : part.strides) s.pop_back();
  }
  Dims position(space.rank() - most, 0);
  const auto step = [&](size_t d, int64_t by) {
    position[d] += by;
    for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += by * space.strides[k][most + d];
  };
  for (size_t d = 0; d < position.size();) {
    run(part, std::span<const int64_t>(offsets));
    for (d = 0; d < position.size() && position[d] + 1 == space.sizes[most + d]; ++d)
      step(d, -position[d]);
    if (d < position.size()) step(d, 1);
  }
}

// The strides that ATen gives a new elementwise result of shape `sizes`: the operands' strides if
// all agree; else dense strides with the dimensions in the operands' order, where the first operand
// with different strides in two dimensions decides their order (aten/src/ATen/TensorIterator.cpp:
// compute_fast_setup_type, reorder_dimensions). Empty: contiguous. `operands` are shapes and
// strides before broadcasting.
Dims elementwise_strides(std::span<const int64_t> sizes, std::span<const Strided> operands);
// Dense strides of 4 or 5 dimensions with the channels innermost.
Dims channels_last_strides(std::span<const int64_t> sizes);

}  // namespace ocltensor
