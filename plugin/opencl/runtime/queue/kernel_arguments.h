// A kernel's arguments before they are passed to clSetKernelArg.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace ocltensor::opencl {

// The changed arguments, in the order in which they were set.
class ArgumentChanges {
 public:
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }
  // `value` null: `bytes` of local memory.
  void add(uint32_t index, size_t bytes, const void* value) {
    const Header header{index, static_cast<uint32_t>(bytes), value != nullptr};
    const size_t at = bytes_.size(), held = value != nullptr ? (bytes + 7) / 8 * 8 : 0;
    bytes_.resize(at + sizeof header + held);
    std::memcpy(bytes_.data() + at, &header, sizeof header);
    if (value != nullptr) std::memcpy(bytes_.data() + at + sizeof header, value, bytes);
  }
  // Calls set(index, bytes, value) for each, until one call does not return 0; returns that result.
  template <typename Set>
  int for_each(Set&& set) const {
    for (size_t at = 0; at < bytes_.size();) {
      Header header;
      std::memcpy(&header, bytes_.data() + at, sizeof header);
      at += sizeof header;
      const void* value = header.has_value ? bytes_.data() + at : nullptr;
      if (const int code = set(header.index, size_t{header.bytes}, value)) return code;
      if (header.has_value) at += (header.bytes + 7) / 8 * 8;
    }
    return 0;
  }

 private:
  struct Header {
    uint32_t index, bytes;
    uint64_t has_value;
  };
  std::vector<unsigned char> bytes_;
};

}  // namespace ocltensor::opencl
