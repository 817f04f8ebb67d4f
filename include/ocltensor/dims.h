// Shapes and strides: a vector that has room for the usual ones in itself, and the arithmetic on
// it. Device-free.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ocltensor/error.h"

namespace ocltensor {

class Dims {
 public:
  // One more than tensors have: complex numbers are also seen as pairs of real ones.
  static constexpr size_t kMost = TB_MAX_RANK + 1;

  Dims() : size_(0) {}  // const ones, too
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  Dims(std::span<const int64_t> values) : Dims() { assign(values); }  // NOLINT: implicit on purpose
  Dims(const std::vector<int64_t>& values) : Dims(std::span(values)) {}  // NOLINT
  Dims(size_t count, int64_t value) : Dims() {
    for (size_t i = 0; i < count; ++i) push_back(value);
  }
  Dims(const Dims& other) : Dims() { assign(other); }
  Dims(Dims&& other) noexcept : Dims() { take(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) assign(other);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~Dims() { release(); }

  void push_back(int64_t value) {
    if (size_ == kInline && values_ == inline_) make_room();
    if (size_ == kMost) raise_rank();
    values_[size_++] = value;
  }
  void pop_back() { --size_; }
  void insert(size_t at, int64_t value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t& operator[](size_t i) { return values_[i]; }
  int64_t operator[](size_t i) const { return values_[i]; }
  int64_t& back() { return values_[size_ - 1]; }
  int64_t back() const { return values_[size_ - 1]; }
  int64_t* begin() { return values_; }
  int64_t* end() { return values_ + size_; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + size_; }
  const int64_t* data() const { return values_; }
  operator std::span<const int64_t>() const {
    return {values_, size_};
  }  // NOLINT: implicit on purpose
  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr size_t kInline = 8;

  [[noreturn]] static void raise_rank() {
    unsupported(TB_REASON_RANK, "tensors have at most {} dimensions", TB_MAX_RANK);
  }
  void assign(std::span<const int64_t> values) {
    if (values.size() > kMost) raise_rank();
    if (values.size() > kInline && values_ == inline_) make_room();
    size_ = static_cast<uint32_t>(values.size());
    std::copy(values.begin(), values.end(), values_);
  }
  // Takes the memory of one that has some; copies what is in the other itself.
  void take(Dims& other) noexcept {
    if (other.values_ == other.inline_) {
      size_ = other.size_;
      std::copy(other.begin(), other.end(), values_);
      return;
    }
    release();
    size_ = std::exchange(other.size_, 0);
    values_ = std::exchange(other.values_, other.inline_);
  }
  void make_room() {
    auto* const room = new int64_t[kMost];
    std::copy(begin(), end(), room);
    values_ = room;
  }
  void release() {
    if (values_ != inline_) delete[] values_;
  }

  uint32_t size_;
  int64_t* values_ = inline_;  // or memory for kMost
  int64_t inline_[kInline];    // the first size_ have values
};

// Some of a tensor's dimensions, by number.
using DimMask = std::bitset<Dims::kMost>;
inline DimMask first_dims(size_t count) { return DimMask().set() >> (Dims::kMost - count); }

// A loop, because shapes are short: it is faster than the call of memcmp that std::equal makes.
inline bool same(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}
// Product of the entries; 1 for none. TB_E_INVALID when it overflows int64.
OCLTENSOR_API int64_t numel(std::span<const int64_t> sizes);
OCLTENSOR_API Dims contiguous_strides(std::span<const int64_t> sizes);
// Row-major without gaps; dimensions of size 1 do not matter, empty tensors are contiguous.
OCLTENSOR_API bool is_contiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// The common shape by NumPy's rules. TB_E_INVALID if there is none.
OCLTENSOR_API Dims broadcast(std::span<const int64_t> a, std::span<const int64_t> b);
// Strides that read a tensor of `sizes` as if it had shape `target` (0 where it repeats).
OCLTENSOR_API Dims broadcast_strides(std::span<const int64_t> sizes,
                                     std::span<const int64_t> strides,
                                     std::span<const int64_t> target);
// -1 is the last dimension. A scalar counts as one-dimensional, as in ATen. TB_E_INVALID outside
// the range.
OCLTENSOR_API int64_t wrap_dim(int64_t dim, int64_t rank);
// The range [low, high) of the elements' positions, in elements relative to the first one.
struct Extent {
  int64_t low;
  int64_t high;
};
OCLTENSOR_API Extent extent(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// True if a stride is 0 in a dimension of size > 1, so that two indices name one element. As in
// ATen, other strides that do so are not recognised.
OCLTENSOR_API bool has_internal_overlap(std::span<const int64_t> sizes,
                                        std::span<const int64_t> strides);

// Formats as "[2, 3]", but only when it is printed: checks on the launch path pass shapes that are
// nearly always right. Refers to the caller's values.
struct DimsText {
  std::span<const int64_t> values;
  OCLTENSOR_API operator std::string() const;  // NOLINT: implicit on purpose
};
inline DimsText to_string(std::span<const int64_t> values) { return {values}; }

}  // namespace ocltensor

namespace fmt {  // opened, as Doxygen refuses a name with an unknown scope
template <>
struct formatter<ocltensor::DimsText> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const ocltensor::DimsText& text, format_context& context) const {
    const std::string made = text;
    return std::copy(made.begin(), made.end(), context.out());
  }
};
}  // namespace fmt
