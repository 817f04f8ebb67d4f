// Reordering and merging the dimensions of an elementwise loop.
#include "iteration.h"

#include <algorithm>
#include <cstdlib>

namespace ocltensor {
namespace {

// True if dimension a belongs inside dimension b. The first operand whose strides differ decides.
bool inner_to(size_t a, size_t b, std::span<const Dims> strides) {
  for (const Dims& s : strides) {
    const int64_t sa = std::abs(s[a]);
    const int64_t sb = std::abs(s[b]);
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  return a > b;
}

bool mergeable(const IterationSpace& space, size_t inner, std::span<const Dims> strides,
               size_t outer) {
  for (size_t k = 0; k < strides.size(); ++k)
    if (space.strides[k][inner] * space.sizes[inner] != strides[k][outer]) return false;
  return true;
}

// Channels innermost, as ATen's is_channels_last_contiguous; dimensions of size 1 do not matter.
bool is_channels_last(const Strided& t) {
  if (t.sizes.size() != 4 && t.sizes.size() != 5) return false;
  int64_t expected = 1;
  const auto step = [&](size_t d) {
    if (t.sizes[d] == 1) return true;
    if (t.strides[d] != expected) return false;
    expected *= t.sizes[d];
    return true;
  };
  if (!step(1)) return false;
  for (size_t d = t.sizes.size(); d-- > 2;)
    if (!step(d)) return false;
  return step(0);
}

// Above 0: dimension a belongs outside b; below 0: inside; 0: no operand decides.
int compare_dimensions(size_t a, size_t b, std::span<const int64_t> sizes,
                       std::span<const Strided> operands) {
  for (const Strided& t : operands) {
    const size_t skip = sizes.size() - t.sizes.size();
    const auto stride = [&](size_t d) {
      return d < skip || (t.sizes[d - skip] == 1 && sizes[d] != 1) ? 0 : t.strides[d - skip];
    };
    const int64_t sa = stride(a);
    const int64_t sb = stride(b);
    if (sa == 0 || sb == 0) continue;
    if (sa != sb) return sa < sb ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

Dims channels_last_strides(std::span<const int64_t> sizes) {
  Dims strides(sizes.size(), 1);
  int64_t step = std::max<int64_t>(sizes[1], 1);
  for (size_t d = sizes.size(); d-- > 2; step *= std::max<int64_t>(sizes[d], 1)) strides[d] = step;
  strides[0] = step;
  return strides;
}

bool is_dense(const Strided& t) {
  if (is_contiguous(t.sizes, t.strides)) return true;
  Dims order;  // by stride, smallest first
  const auto step = [&](int64_t d) { return std::abs(t.strides[static_cast<size_t>(d)]); };
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (t.sizes[d] < 2) continue;
    size_t at = order.size();
    while (at > 0 && step(order[at - 1]) > step(static_cast<int64_t>(d))) --at;
    order.insert(at, static_cast<int64_t>(d));
  }
  int64_t expected = 1;
  for (const int64_t d : order) {
    if (step(d) != expected) return false;
    expected *= t.sizes[static_cast<size_t>(d)];
  }
  return true;
}

bool is_flat(std::span<const Strided> tensors) {
  const Strided& first = tensors.front();
  if (!is_contiguous(first.sizes, first.strides)) return false;
  return std::ranges::all_of(tensors.subspan(1), [&](const Strided& t) {
    return same(t.sizes, first.sizes) &&
           (same(t.strides, first.strides) || is_contiguous(t.sizes, t.strides));
  });
}

Dims elementwise_strides(std::span<const int64_t> sizes, std::span<const Strided> operands) {
  bool same_shape = true;
  bool contiguous = true;
  for (const Strided& t : operands) {
    same_shape &= same(t.sizes, sizes);
    contiguous &= is_contiguous(t.sizes, t.strides);
  }
  const bool ones = std::find(sizes.begin(), sizes.end(), 1) != sizes.end();
  if (sizes.size() < 2 || (contiguous && (same_shape || !ones))) return {};
  if (same_shape && std::all_of(operands.begin(), operands.end(), is_channels_last))
    return channels_last_strides(sizes);
  const auto& first = operands.front();
  if (same_shape && std::all_of(operands.begin(), operands.end(), [&](const Strided& t) {
        return is_dense(t) && same(t.strides, first.strides) && extent(t.sizes, t.strides).low == 0;
      }))
    return Dims(first.strides);

  Dims order;  // innermost first; an insertion sort because the comparison is no total order
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(static_cast<int64_t>(d));
  for (size_t i = 1; i < order.size(); ++i) {
    size_t moving = i;
    for (size_t k = i; k-- > 0;) {
      const int c = compare_dimensions(static_cast<size_t>(order[k]),
                                       static_cast<size_t>(order[moving]), sizes, operands);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(order[k], order[moving]);
      moving = k;
    }
  }
  Dims strides(sizes.size(), 0);
  int64_t step = 1;
  bool row_major = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto d = static_cast<size_t>(order[i]);
    row_major &= d == order.size() - 1 - i;
    strides[d] = step;
    step *= sizes[d];
  }
  return row_major ? Dims() : strides;
}

IterationSpace make_iteration(std::span<const int64_t> sizes, std::span<const Dims> strides) {
  IterationSpace space;
  space.strides.resize(strides.size());
  space.numel = numel(sizes);

  Dims order;  // dimensions, innermost first
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    size_t at = order.size();
    while (at > 0 && inner_to(d, static_cast<size_t>(order[at - 1]), strides)) --at;
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
