// Scattering elements into a storage image, and reading it back.
#include "image.h"

namespace ocltensor::testing {

Image::Image(DType dtype, const Dims& sizes, const Layout& layout)
    : dtype_(dtype),
      sizes_(sizes),
      layout_(layout),
      bytes_(static_cast<size_t>(2 * kGuard + layout.storage * size_of(dtype)), kSentinel) {}

Image::Image(const HostTensor& value, const Layout& layout)
    : Image(value.dtype, value.sizes, layout) {
  const int64_t item = size_of(dtype_);
  int64_t i = 0;
  for (const int64_t at : offsets())
    std::memcpy(bytes_.data() + at, value.element(i++), static_cast<size_t>(item));
}

Image Image::poisoned(DType dtype, const Dims& sizes, const Layout& layout) {
  Image image(dtype, sizes, layout);
  for (const int64_t at : image.offsets())
    std::memset(image.bytes_.data() + at, static_cast<int>(kPoison),
                static_cast<size_t>(size_of(dtype)));
  return image;
}

uint64_t Image::origin() const {
  return static_cast<uint64_t>(kGuard + layout_.offset * size_of(dtype_));
}

std::vector<int64_t> Image::offsets() const {
  const int64_t n = numel(sizes_);
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(n));
  Dims index(sizes_.size(), 0);
  int64_t at = layout_.offset;
  for (int64_t i = 0; i < n; ++i) {
    result.push_back(kGuard + at * size_of(dtype_));
    for (size_t d = sizes_.size(); d > 0; --d) {
      at += layout_.strides[d - 1];
      if (++index[d - 1] < sizes_[d - 1]) break;
      at -= layout_.strides[d - 1] * sizes_[d - 1];
      index[d - 1] = 0;
    }
  }
  return result;
}

HostTensor Image::gather(const std::vector<std::byte>& bytes) const {
  HostTensor t(dtype_, sizes_);
  int64_t i = 0;
  for (const int64_t at : offsets())
    std::memcpy(t.element(i++), bytes.data() + at, static_cast<size_t>(size_of(dtype_)));
  return t;
}

int64_t Image::damage(const std::vector<std::byte>& bytes) const {
  std::vector<bool> element(bytes.size(), false);
  for (const int64_t at : offsets())
    for (int64_t b = 0; b < size_of(dtype_); ++b) element[static_cast<size_t>(at + b)] = true;
  for (size_t b = 0; b < bytes.size(); ++b)
    if (!element[b] && bytes[b] != kSentinel) return static_cast<int64_t>(b);
  return -1;
}

}  // namespace ocltensor::testing
