// Shape and stride arithmetic.
#include "ocltensor/dims.h"

namespace ocltensor {

int64_t numel(std::span<const int64_t> sizes) {
  int64_t product = 1;
  bool empty = false;
  bool overflow = false;
  for (int64_t s : sizes) {
    check(s >= 0, "a size must not be negative, got {}", to_string(sizes));
    empty |= s == 0;
    overflow |= __builtin_mul_overflow(product, s, &product);
  }
  check(empty || !overflow, "a tensor of shape {} has more elements than can be counted",
        to_string(sizes));
  return empty ? 0 : product;
}

Dims contiguous_strides(std::span<const int64_t> sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return strides;
}

bool is_contiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

Dims broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (size_t i = result.size(), back = 1; i-- > 0; ++back) {
    const int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    check(x == y || x == 1 || y == 1,  // in PyTorch's words, for which programs look
          "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton "
          "dimension {}; the shapes are {} and {}",
          x, y, i, to_string(a), to_string(b));
    result[i] = x == 1 ? y : x;
  }
  return result;
}

Dims broadcast_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                       std::span<const int64_t> target) {
  check(sizes.size() <= target.size(), "a tensor of shape {} cannot be broadcast to {}",
        to_string(sizes), to_string(target));
  const size_t skip = target.size() - sizes.size();
  Dims result(target.size(), 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == target[skip + i])
      result[skip + i] = sizes[i] == 1 ? 0 : strides[i];
    else
      check(sizes[i] == 1, "a tensor of shape {} cannot be broadcast to {}", to_string(sizes),
            to_string(target));
  }
  return result;
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  const int64_t range = std::max<int64_t>(rank, 1);
  if (dim < -range || dim >= range)
    throw RangeError(
        fmt::format("dimension {} is out of range: expected {} to {}", dim, -range, range - 1));
  return dim < 0 ? dim + range : dim;
}

Extent extent(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Extent e{0, 0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return {0, 0};
    const int64_t reach = (sizes[i] - 1) * strides[i];
    (reach < 0 ? e.low : e.high) += reach;
  }
  ++e.high;
  return e;
}

bool has_internal_overlap(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (is_contiguous(sizes, strides)) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && strides[i] == 0) return true;
  return false;
}

DimsText::operator std::string() const {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

}  // namespace ocltensor
