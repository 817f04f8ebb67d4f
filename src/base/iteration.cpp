// Reordering and merging the dimensions of an elementwise loop.
#include "iteration.h"

#include <cstdlib>

namespace ocltensor {
namespace {

// Should dimension a lie inside dimension b? The first operand that distinguishes them decides.
bool inner_to(size_t a, size_t b, std::span<const int64_t> sizes, std::span<const Dims> strides) {
  for (const Dims& s : strides) {
    const int64_t sa = std::abs(s[a]);
    const int64_t sb = std::abs(s[b]);
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  (void)sizes;
  return a > b;
}

bool mergeable(const IterationSpace& space, size_t inner, std::span<const Dims> strides,
               size_t outer) {
  for (size_t k = 0; k < strides.size(); ++k)
    if (space.strides[k][inner] * space.sizes[inner] != strides[k][outer]) return false;
  return true;
}

}  // namespace

IterationSpace make_iteration(std::span<const int64_t> sizes, std::span<const Dims> strides) {
  IterationSpace space;
  space.strides.resize(strides.size());
  space.numel = numel(sizes);

  Dims order;  // dimensions, innermost first
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    size_t at = order.size();
    while (at > 0 && inner_to(d, static_cast<size_t>(order[at - 1]), sizes, strides)) --at;
    order.insert(at, static_cast<int64_t>(d));
  }
  for (int64_t dim : order) {
    const auto d = static_cast<size_t>(dim);
    if (!space.sizes.empty() && mergeable(space, space.sizes.size() - 1, strides, d)) {
      space.sizes.back() *= sizes[d];
      continue;
    }
    space.sizes.push_back(sizes[d]);
    for (size_t k = 0; k < strides.size(); ++k) space.strides[k].push_back(strides[k][d]);
  }
  if (space.sizes.empty()) {
    space.sizes.push_back(space.numel);
    for (Dims& s : space.strides) s.push_back(1);
  }
  return space;
}

}  // namespace ocltensor
