// What a fuzzer gives, as numbers and texts.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

// The input, consumed from its front; zeros follow.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool done() const { return size_ == 0; }
  template <typename T>
  T number() {
    T value{};
    const size_t count = size_ < sizeof value ? size_ : sizeof value;
    std::memcpy(&value, data_, count);
    data_ += count;
    size_ -= count;
    return value;
  }
  uint8_t byte() { return number<uint8_t>(); }
  // Small, at a border, or anything.
  int64_t any() {
    constexpr std::array<int64_t, 12> kBorders = {0,
                                                  -1,
                                                  1,
                                                  255,
                                                  4096,
                                                  INT32_MAX,
                                                  INT64_MAX,
                                                  INT64_MIN,
                                                  int64_t{1} << 31,
                                                  int64_t{1} << 40,
                                                  int64_t{1} << 62,
                                                  -4096};
    switch (byte() % 4) {
      case 0: return kBorders[byte() % kBorders.size()];
      case 1: return number<int64_t>();
      default: return byte() % 9;
    }
  }
  std::string text() {
    std::string value(byte() % 24, 0);
    for (char& c : value) c = static_cast<char>(byte());
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};
