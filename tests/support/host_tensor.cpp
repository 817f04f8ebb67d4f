// Element access by dtype, and the limits of the floating types.
#include "host_tensor.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ocltensor/error.h"

namespace ocltensor::testing {
namespace {

template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

[[noreturn]] void no_such_type(DType type) {
  fail(TB_E_INVALID, "the test support does not handle {}", name(type));
}

}  // namespace

double HostTensor::real(int64_t i) const {
  const std::byte* p = element(i);
  switch (dtype) {
    case DType::Float16: return half_to_float(load<uint16_t>(p));
    case DType::BFloat16: return bfloat16_to_float(load<uint16_t>(p));
    case DType::Float32: return load<float>(p);
    case DType::Float64: return load<double>(p);
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU: return float8_to_float(load<uint8_t>(p), dtype);
    case DType::UInt64: return static_cast<double>(load<uint64_t>(p));
    default: return static_cast<double>(integer(i));
  }
}

int64_t HostTensor::integer(int64_t i) const {
  const std::byte* p = element(i);
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8: return load<uint8_t>(p);
    case DType::Int8: return load<int8_t>(p);
    case DType::Int16: return load<int16_t>(p);
    case DType::Int32: return load<int32_t>(p);
    case DType::Int64: return load<int64_t>(p);
    case DType::UInt16: return load<uint16_t>(p);
    case DType::UInt32: return load<uint32_t>(p);
    case DType::UInt64: return static_cast<int64_t>(load<uint64_t>(p));
    case DType::Complex32:
    case DType::Complex64:
    case DType::Complex128: no_such_type(dtype);
    default: return static_cast<int64_t>(real(i));
  }
}

void HostTensor::set(int64_t i, double value) {
  std::byte* p = element(i);
  switch (dtype) {
    case DType::Float16: return store(p, float_to_half(static_cast<float>(value)));
    case DType::BFloat16: return store(p, float_to_bfloat16(static_cast<float>(value)));
    case DType::Float32: return store(p, static_cast<float>(value));
    case DType::Float64: return store(p, value);
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU: return store(p, float_to_float8(static_cast<float>(value), dtype));
    case DType::Bool: return store(p, static_cast<uint8_t>(value != 0));
    default: return set_integer(i, static_cast<int64_t>(value));
  }
}

void HostTensor::set_integer(int64_t i, int64_t value) {
  std::byte* p = element(i);
  switch (dtype) {
    case DType::Bool: return store(p, static_cast<uint8_t>(value != 0));
    case DType::UInt8: return store(p, static_cast<uint8_t>(value));
    case DType::Int8: return store(p, static_cast<int8_t>(value));
    case DType::Int16: return store(p, static_cast<int16_t>(value));
    case DType::Int32: return store(p, static_cast<int32_t>(value));
    case DType::Int64: return store(p, value);
    case DType::UInt16: return store(p, static_cast<uint16_t>(value));
    case DType::UInt32: return store(p, static_cast<uint32_t>(value));
    case DType::UInt64: return store(p, static_cast<uint64_t>(value));
    case DType::Complex32:
    case DType::Complex64:
    case DType::Complex128: no_such_type(dtype);
    default: return set(i, static_cast<double>(value));
  }
}

std::complex<double> HostTensor::complex(int64_t i) const {
  if (!is_complex(dtype)) return real(i);
  const std::byte* p = element(i);
  if (dtype == DType::Complex128) return {load<double>(p), load<double>(p + sizeof(double))};
  if (dtype == DType::Complex32)
    return {half_to_float(load<uint16_t>(p)), half_to_float(load<uint16_t>(p + sizeof(uint16_t)))};
  return {load<float>(p), load<float>(p + sizeof(float))};
}
void HostTensor::set_complex(int64_t i, std::complex<double> value) {
  std::byte* p = element(i);
  if (dtype == DType::Complex128) return store(p, value);
  const std::complex<float> rounded(value);
  if (dtype == DType::Complex64) return store(p, rounded);
  store(p, std::array{float_to_half(rounded.real()), float_to_half(rounded.imag())});
}
double HostTensor::magnitude(int64_t i) const {
  return is_complex(dtype) ? std::abs(complex(i)) : std::abs(real(i));
}

HostTensor HostTensor::to(DType type) const {
  if (type == dtype) return *this;
  HostTensor result(type, sizes);
  for (int64_t i = 0, n = numel(); i < n; ++i)
    is_floating(dtype) ? result.set(i, real(i)) : result.set_integer(i, integer(i));
  return result;
}

HostTensor HostTensor::absolute() const {
  if (is_complex(dtype)) {
    HostTensor moduli(DType::Float64, sizes);
    for (int64_t i = 0, n = numel(); i < n; ++i) moduli.set(i, magnitude(i));
    return moduli;
  }
  HostTensor result(*this);
  for (int64_t i = 0, n = numel(); i < n; ++i) {
    if (is_floating(dtype))
      result.set(i, std::abs(real(i)));
    else if (integer(i) < 0)
      result.set_integer(i, -integer(i));
  }
  return result;
}

double round_to(DType type, double value) {
  HostTensor one(type, {});
  one.set(0, value);
  return one.real(0);
}

double largest_finite(DType type) {
  switch (type) {
    case DType::Float16: return 65504;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

double smallest_normal(DType type) {
  switch (type) {
    case DType::Float16: return 0x1p-14;
    case DType::BFloat16:
    case DType::Float32: return 0x1p-126;
    default: return std::numeric_limits<double>::min();
  }
}

double smallest_denormal(DType type) {
  switch (type) {
    case DType::Float16: return 0x1p-24;
    case DType::BFloat16: return 0x1p-133;
    case DType::Float32: return 0x1p-149;
    default: return std::numeric_limits<double>::denorm_min();
  }
}

int64_t lowest_integer(DType type) {
  if (type == DType::Bool || type == DType::UInt8) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(type));
}

int64_t highest_integer(DType type) {
  if (type == DType::Bool) return 1;
  if (type == DType::UInt8) return 255;
  return std::numeric_limits<int64_t>::max() >> (64 - 8 * size_of(type));
}

}  // namespace ocltensor::testing
