// Device memory for a kernel argument: an address, and the bytes around it that belong to the
// caller.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>

#include "base/value.h"

namespace ocltensor::opencl {

// Bytes [low, high) around `address`. Address 0, or nullptr, stands for an argument without memory,
// which the kernel does not read.
struct MemoryRange {
  MemoryRange(tb_address where, int64_t from, int64_t to) : address(where), low(from), high(to) {}
  // Conversions are implicit on purpose, so that tensors and scratch memory can be passed directly.
  MemoryRange(std::nullptr_t) : address(0), low(0), high(0) {}  // NOLINT
  // The bytes that sizes and strides span.
  MemoryRange(TensorView tensor);         // NOLINT
  MemoryRange(const TensorView* tensor);  // NOLINT: nullptr as above
  template <typename T>                   // std::nullopt as nullptr
  requires std::convertible_to<const T&, MemoryRange> MemoryRange(
      const std::optional<T>& what)  // NOLINT
      : MemoryRange(what ? MemoryRange(*what) : MemoryRange(nullptr)) {}

  tb_address address;
  int64_t low, high;
};

}  // namespace ocltensor::opencl
