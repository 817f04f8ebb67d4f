// The bytes of a tensor's storage with sentinels on both sides and in the gaps of its strides.
#pragma once

#include <cstring>
#include <vector>

#include "case.h"

namespace ocltensor::testing {

class Image {
 public:
  // Bytes on each side, a multiple of every alignment: some rows of a tile that writes too many.
  static constexpr int64_t kGuard = 16 << 10;
  static constexpr std::byte kSentinel{0xa5};
  static constexpr std::byte kPoison{0xcd};

  // Elements of `value` in a storage of the layout.
  Image(const HostTensor& value, const Layout& layout);
  // Poisoned elements, for outputs.
  static Image poisoned(DType dtype, const Dims& sizes, const Layout& layout);

  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  // Byte offset of element (0, 0, ...) in bytes().
  uint64_t origin() const;
  HostTensor gather(const std::vector<std::byte>& bytes) const;
  // Offset of the first byte outside the elements that differs from the sentinel; -1 if none.
  int64_t damage(const std::vector<std::byte>& bytes) const;
  DType dtype() const { return dtype_; }
  const Dims& sizes() const { return sizes_; }
  const Layout& layout() const { return layout_; }

 private:
  Image(DType dtype, const Dims& sizes, const Layout& layout);
  // Byte offset of each element, in row-major order.
  std::vector<int64_t> offsets() const;
  DType dtype_;
  Dims sizes_;
  Layout layout_;
  std::vector<std::byte> bytes_;
};

}  // namespace ocltensor::testing
