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
  Complex64,
  Complex128,
  Complex32,
  UInt16,
  UInt32,
  UInt64,
  Float8E4M3FN,
  Float8E5M2,
  Float8E4M3FNUZ,
  Float8E5M2FNUZ,
  Float8E8M0FNU
};
inline constexpr int kDTypeCount = 21;

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
    {"complex128", "c128", 16, {TB_DTYPE_COMPLEX, 128, 1}},
    {"complex32", "c32", 4, {TB_DTYPE_COMPLEX, 32, 1}},
    {"uint16", "u16", 2, {TB_DTYPE_UINT, 16, 1}},
    {"uint32", "u32", 4, {TB_DTYPE_UINT, 32, 1}},
    {"uint64", "u64", 8, {TB_DTYPE_UINT, 64, 1}},
    {"float8_e4m3fn", "e4m3fn", 1, {TB_DTYPE_FLOAT8_E4M3FN, 8, 1}},
    {"float8_e5m2", "e5m2", 1, {TB_DTYPE_FLOAT8_E5M2, 8, 1}},
    {"float8_e4m3fnuz", "e4m3fnuz", 1, {TB_DTYPE_FLOAT8_E4M3FNUZ, 8, 1}},
    {"float8_e5m2fnuz", "e5m2fnuz", 1, {TB_DTYPE_FLOAT8_E5M2FNUZ, 8, 1}},
    {"float8_e8m0fnu", "e8m0fnu", 1, {TB_DTYPE_FLOAT8_E8M0FNU, 8, 1}},
};

constexpr const DTypeInfo& info(DType t) { return kDTypeInfo[static_cast<int>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr int64_t size_of(DType t) { return info(t).bytes; }
constexpr tb_dtype to_abi(DType t) { return info(t).abi; }

// The positions in the table by code and bytes: a fast look-up, because every view of every
// argument makes one.
struct AbiTypes {
  static constexpr int kCodes = TB_DTYPE_FLOAT8_E8M0FNU + 1;
  static constexpr int kMostBytes = 16;
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

[[noreturn]] OCLTENSOR_API void refuse_type(tb_dtype type);
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
constexpr bool is_complex(DType t) { return t >= DType::Complex64 && t <= DType::Complex32; }
// The unsigned types of more than a byte. As in ATen, few operators take them, and they promote
// with floating types alone.
constexpr bool is_wide_unsigned(DType t) { return t >= DType::UInt16 && t <= DType::UInt64; }
// Types of eight bits, which checkpoints are stored in: moved, converted and compared, no more.
// They are not among is_floating's.
constexpr bool is_float8(DType t) { return t >= DType::Float8E4M3FN; }
constexpr bool is_unsigned(DType t) {
  return t == DType::Bool || t == DType::UInt8 || is_wide_unsigned(t);
}
constexpr bool is_integral(DType t, bool include_bool) {
  return t == DType::Bool ? include_bool : t <= DType::Int64 || is_wide_unsigned(t);
}
// The type of a complex number's parts; another type itself.
constexpr DType real_type(DType t) {
  return t == DType::Complex64    ? DType::Float32
         : t == DType::Complex128 ? DType::Float64
         : t == DType::Complex32  ? DType::Float16
                                  : t;
}
// The complex type with parts of a type: complex64 for bfloat16, which has none, and for integers.
constexpr DType complex_type(DType t) {
  return t == DType::Float64   ? DType::Complex128
         : t == DType::Float16 ? DType::Complex32
         : is_complex(t)       ? t
                               : DType::Complex64;
}
// The type to compute in, ATen's opmath type: float32 for floating types of less, complex64 for
// complex32, else the type itself.
constexpr DType compute_type(DType t) {
  if (t == DType::Complex32) return DType::Complex64;
  return t == DType::Float16 || t == DType::BFloat16 || is_float8(t) ? DType::Float32 : t;
}
// Machine epsilon: distance from 1 to the next value; 0 for integers.
OCLTENSOR_API double epsilon(DType t);

// Numbers of a float8 type as bits, rounded to nearest even. As in ATen (since 2.13), a number
// beyond the largest finite one becomes infinity in e5m2, that largest one in e4m3fn, and NaN in
// the others. e8m0fnu, scales of blocks, has powers of two alone: no sign, and no zero.
OCLTENSOR_API uint8_t float_to_float8(float value, DType type);
OCLTENSOR_API float float8_to_float(uint8_t bits, DType type);

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
