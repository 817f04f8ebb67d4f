// Classes of similar problems: what is measured for one problem is used for all of its class.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace ocltensor::opencl {

// The size that stands for a class: up to 16 the size itself, above its three leading bits.
inline int64_t size_class(int64_t size) {
  if (size <= 16) return size;
  const int shift = std::bit_width(static_cast<uint64_t>(size)) - 3;
  return size >> shift << shift;
}

// The numbers that identify a class. Made anew for every call, so it allocates nothing.
class ShapeClass {
 public:
  static constexpr size_t kMost = 24;
  ShapeClass() = default;  // empty: not measured
  ShapeClass(std::initializer_list<int64_t> numbers) {
    for (const int64_t n : numbers) add(n);
  }
  // Numbers beyond kMost are dropped, which makes classes coarser.
  void add(int64_t number) {
    if (count_ < kMost) numbers_[count_++] = number;
  }
  bool empty() const { return count_ == 0; }
  std::span<const int64_t> numbers() const { return {numbers_.data(), count_}; }
  int64_t operator[](size_t i) const { return numbers_[i]; }
  uint64_t hash() const {
    uint64_t h = count_;
    for (const int64_t n : numbers()) {
      h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 29;
    }
    return h;
  }
  friend bool operator==(const ShapeClass& a, const ShapeClass& b) {
    return std::ranges::equal(a.numbers(), b.numbers());
  }

 private:
  size_t count_ = 0;
  std::array<int64_t, kMost> numbers_{};
};

}  // namespace ocltensor::opencl
