// The specialisation of a kernel: a small set of names with values. Cheap to build and compare on
// the launch path (names and texts are string literals, compared by address), turned into
// text only when a program is built.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ocltensor/dtype.h"

namespace ocltensor::opencl {

// A define that some kernel reads. The build makes constants of these alone (kernels/defines.h), so
// that a misspelt one does not compile.
struct DefineName {
  const char* text;
};

class Defines {
 public:
  Defines& set(DefineName name, int64_t value) { return add({name.text, nullptr, value}); }
  // `text` must live as long as the process.
  Defines& set(DefineName name, const char* text) { return add({name.text, text, 0}); }
  Defines& type(DefineName name, DType dtype) { return set(name, info(dtype).suffix); }

  uint64_t hash() const { return hash_; }
  std::string source() const;  // sorted "#define NAME VALUE" lines
  std::string line() const;    // "NAME VALUE; NAME VALUE", sorted, for logs
  friend bool operator==(const Defines& a, const Defines& b) {
    if (a.hash_ != b.hash_ || a.count_ != b.count_) return false;
    for (uint32_t i = 0; i < a.count_; ++i)
      if (!(a.entries_[i] == b.entries_[i])) return false;
    return true;
  }

 private:
  struct Entry {
    const char* name;
    const char* text;
    int64_t value;
    bool operator==(const Entry&) const = default;
  };
  static constexpr uint32_t kCapacity = 32;

  Defines& add(Entry entry) {
    if (count_ == kCapacity) [[unlikely]]
      refuse();
    entries_[count_++] = entry;
    hash_ = mix(hash_, reinterpret_cast<uintptr_t>(entry.name));
    hash_ =
        mix(hash_, reinterpret_cast<uintptr_t>(entry.text) + static_cast<uint64_t>(entry.value));
    return *this;
  }
  std::vector<std::string> sorted() const;  // "NAME VALUE"
  [[noreturn]] static void refuse();
  static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
  }

  uint32_t count_ = 0;
  uint64_t hash_ = 0x243f6a8885a308d3ull;
  std::array<Entry, kCapacity> entries_;
};

}  // namespace ocltensor::opencl
