// Element types: names, sizes, categories, conversion to and from the ABI's tb_dtype, and 16-bit
// float conversion.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "ocltensor/api.h"
#include "tensor_backend/plugin.h"

namespace ocltensor {

enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64
};
inline constexpr int kDTypeCount = 11;

struct DTypeInfo {
  const char* name;    // "float32"
  const char* suffix;  // "f32": how kernels name the type
  uint8_t bytes;
  tb_dtype abi;
};

inline constexpr DTypeInfo kDTypeInfo[kDTypeCount] = {
    {"bool", "bool", 1, {TB_DTYPE_BOOL, 8, 1}},
    {"uint8", "u8", 1, {TB_DTYPE_UINT, 8, 1}},
    {"int8", "i8", 1, {TB_DTYPE_INT, 8, 1}},
    {"int16", "i16", 2, {TB_DTYPE_INT, 16, 1}},
    {"int32", "i32", 4, {TB_DTYPE_INT, 32, 1}},
    {"int64", "i64", 8, {TB_DTYPE_INT, 64, 1}},
    {"float16", "f16", 2, {TB_DTYPE_FLOAT, 16, 1}},
    {"bfloat16", "bf16", 2, {TB_DTYPE_BFLOAT, 16, 1}},
    {"float32", "f32", 4, {TB_DTYPE_FLOAT, 32, 1}},
    {"float64", "f64", 8, {TB_DTYPE_FLOAT, 64, 1}},
    {"complex64", "c64", 8, {TB_DTYPE_COMPLEX, 64, 1}},
};

constexpr const DTypeInfo& info(DType t) { return kDTypeInfo[static_cast<int>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr int64_t size_of(DType t) { return info(t).bytes; }
constexpr tb_dtype to_abi(DType t) { return info(t).abi; }

// The positions in the table by code and bytes: a fast look-up, because every view of every
// argument makes one.
struct AbiTypes {
  static constexpr int kCodes = TB_DTYPE_BOOL + 1;
  static constexpr int kMostBytes = 8;
  int8_t index[kCodes][kMostBytes + 1];  // -1: none
};
inline constexpr AbiTypes kAbiTypes = [] {
  AbiTypes types{};
  for (auto& row : types.index)
    for (int8_t& index : row) index = -1;
  for (int i = 0; i < kDTypeCount; ++i)
    types.index[kDTypeInfo[i].abi.code][kDTypeInfo[i].abi.bits / 8] = static_cast<int8_t>(i);
  return types;
}();

[[noreturn]] void refuse_type(tb_dtype type);
// Throws Error (TB_UNSUPPORTED, TB_REASON_DTYPE) for a type outside the table.
inline DType from_abi(tb_dtype type) {
  if (type.code < AbiTypes::kCodes && type.bits % 8 == 0 && type.bits <= 8 * AbiTypes::kMostBytes &&
      type.lanes == 1)
    if (const int8_t index = kAbiTypes.index[type.code][type.bits / 8]; index >= 0) [[likely]]
      return static_cast<DType>(index);
  refuse_type(type);
}
// Throws Error (TB_E_INVALID) for an unknown name.
OCLTENSOR_API DType dtype_from_name(std::string_view name);

constexpr bool is_floating(DType t) { return t >= DType::Float16 && t <= DType::Float64; }
constexpr bool is_complex(DType t) { return t == DType::Complex64; }
constexpr bool is_integral(DType t, bool include_bool) {
  return include_bool ? t <= DType::Int64 : t > DType::Bool && t <= DType::Int64;
}
// The type to compute in, ATen's opmath type: float32 for the half types, else the type itself.
constexpr DType compute_type(DType t) {
  return t == DType::Float16 || t == DType::BFloat16 ? DType::Float32 : t;
}
// Machine epsilon: distance from 1 to the next value; 0 for integers.
OCLTENSOR_API double epsilon(DType t);

// IEEE binary16 and bfloat16 stored as bits; round to nearest even, NaN stays NaN.
OCLTENSOR_API uint16_t float_to_half(float value);
OCLTENSOR_API float half_to_float(uint16_t bits);
inline float bfloat16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace ocltensor
