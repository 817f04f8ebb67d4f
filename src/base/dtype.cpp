// Element types: look-ups and IEEE binary16 conversion.
#include "ocltensor/dtype.h"

#include "ocltensor/error.h"

namespace ocltensor {

void refuse_type(tb_dtype type) {
  unsupported(TB_REASON_DTYPE, "element type (code {}, {} bits, {} lanes) is not supported",
              type.code, type.bits, type.lanes);
}

DType dtype_from_name(std::string_view wanted) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (wanted == kDTypeInfo[i].name) return static_cast<DType>(i);
  fail(TB_E_INVALID, "'{}' is not an element type", wanted);
}

double epsilon(DType t) {
  switch (t) {
    case DType::Float16: return 0x1p-10;
    case DType::BFloat16: return 0x1p-7;
    case DType::Float32:
    case DType::Complex64: return 0x1p-23;
    case DType::Float64: return 0x1p-52;
    default: return 0;
  }
}

uint16_t float_to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal: let float addition do the rounding
    float magic;
    const uint32_t half_bits = 0x3f000000;  // 0.5: its ulp is 2^-24, the smallest half
    std::memcpy(&magic, &half_bits, sizeof magic);
    float absolute;
    std::memcpy(&absolute, &magnitude, sizeof absolute);
    absolute += magic;
    uint32_t sum;
    std::memcpy(&sum, &absolute, sizeof sum);
    return static_cast<uint16_t>(sign | (sum - half_bits));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  uint32_t mantissa = half & 0x3ff;
  uint32_t bits;
  if (exponent == 0x1f) {
    bits = sign | 0x7f800000 | (mantissa << 13);
  } else if (exponent != 0) {
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else if (mantissa == 0) {
    bits = sign;
  } else {
    int shift = 0;
    while (!(mantissa & 0x400)) mantissa <<= 1, ++shift;
    bits = sign | static_cast<uint32_t>(113 - shift) << 23 | ((mantissa & 0x3ff) << 13);
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace ocltensor
