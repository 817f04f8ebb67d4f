// What a rank tells the next one of a collective before it takes part: short, and of one length.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine.h"

namespace torch_ocl::distributed {

// A text of up to 111 characters; of a longer one its begin, and a number that depends on all of it
// (FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv).
class Note {
 public:
  Note() = default;
  explicit Note(const std::string& text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    std::memcpy(bytes_.data(), &hash, sizeof hash);
    std::memcpy(bytes_.data() + sizeof hash, text.data(), std::min(text.size(), kText));
  }
  Span span() { return {bytes_.data(), bytes_.size()}; }
  std::string text() const {
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + sizeof(uint64_t);
    return {begin, strnlen(begin, kText)};
  }
  bool operator==(const Note&) const = default;

 private:
  static constexpr size_t kText = 111;
  std::array<std::byte, sizeof(uint64_t) + kText + 1> bytes_{};
};

}  // namespace torch_ocl::distributed
