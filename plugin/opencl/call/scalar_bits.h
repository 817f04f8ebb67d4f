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

// A number in the form in which kernels compute in `type`: complex numbers are two floats, 16-bit
// floats one.
inline uint64_t scalar_bits(const Scalar& value, DType type) {
  if (is_complex(type)) {
    struct {
      float real, imaginary;
    } const parts{static_cast<float>(value.as_double()), static_cast<float>(value.imaginary())};
    return slot_bits(parts);
  }
  if (type == DType::Float64) return slot_bits(value.as_double());
  if (is_floating(type)) return slot_bits(static_cast<float>(value.as_double()));
  return type == DType::Bool ? value.as_bool() : static_cast<uint64_t>(value.as_int());
}

}  // namespace ocltensor::opencl
