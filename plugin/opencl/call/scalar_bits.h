// Numbers in the 8-byte slots of kernels' parameters (FROM_BITS in kernels/include/types.h).
#pragma once

#include <cstdint>
#include <cstring>

#include "base/value.h"

namespace ocltensor::opencl {

// The bytes of a value of up to 8 bytes, the lowest first, followed by zeros.
template <typename T>
uint64_t slot_bits(T value) {
  static_assert(sizeof value <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// A real number in the form in which kernels compute in `type`: floats of less than 32 bits are
// float32.
inline uint64_t scalar_bits(const Scalar& value, DType type) {
  if (type == DType::Float64) return slot_bits(value.as_double());
  if (is_floating(type) || is_float8(type)) return slot_bits(static_cast<float>(value.as_double()));
  return type == DType::Bool ? value.as_bool() : static_cast<uint64_t>(value.as_int());
}

}  // namespace ocltensor::opencl
