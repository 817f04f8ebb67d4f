// Element types: look-ups and conversions of the types that C++ does not have.
#include "ocltensor/dtype.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "name_patterns.h"
#include "ocltensor/error.h"

namespace ocltensor {

void refuse_type(tb_dtype type) {
  unsupported(TB_REASON_DTYPE, "element type (code {}, {} bits, {} lanes) is not supported",
              type.code, type.bits, type.lanes);
}

DType dtype_from_name(std::string_view wanted) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (wanted == kDTypeInfo[i].name) return static_cast<DType>(i);
  std::vector<std::string> names;
  for (const DTypeInfo& known : kDTypeInfo) names.emplace_back(known.name);
  fail(TB_E_INVALID, "'{}' is not an element type{}", wanted, did_you_mean(wanted, names));
}

double epsilon(DType t) {
  switch (t) {
    case DType::Float16: return 0x1p-10;
    case DType::BFloat16: return 0x1p-7;
    case DType::Float32:
    case DType::Complex64: return 0x1p-23;
    case DType::Complex32: return 0x1p-10;
    case DType::Float64:
    case DType::Complex128: return 0x1p-52;
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ: return 0x1p-3;
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ: return 0x1p-2;
    case DType::Float8E8M0FNU: return 1;
    default: return 0;
  }
}

namespace {

// A float8 type: the bits of its mantissa, the exponent's bias, the largest number. Those whose
// name ends in "uz" have no negative zero: its bits are their only NaN. e5m2 alone has infinities.
struct Float8Format {
  int mantissa, bias;
  float largest;
  bool unsigned_zero, infinities;
};
Float8Format format_of(DType type) {
  switch (type) {
    case DType::Float8E4M3FN: return {3, 7, 448, false, false};
    case DType::Float8E5M2: return {2, 15, 57344, false, true};
    case DType::Float8E4M3FNUZ: return {3, 8, 240, true, false};
    case DType::Float8E5M2FNUZ: return {2, 16, 57344, true, false};
    default: fail(TB_E_INTERNAL, "{} is no float8 type", name(type));
  }
}

// Powers of two from 2^-127 on, in a float's exponent: its bits, one more where the mantissa asks
// for it (of what is below 2^-126, more than half; else half or more). 255 is NaN.
uint8_t float_to_e8m0(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  const bool up = exponent > 0 ? mantissa >= 0x400000 : mantissa > 0x400000;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

}  // namespace

uint8_t float_to_float8(float value, DType type) {
  if (type == DType::Float8E8M0FNU) return float_to_e8m0(value);
  const Float8Format f = format_of(type);
  const int sign = std::signbit(value) ? 0x80 : 0;
  const uint8_t nan = f.unsigned_zero ? 0x80 : static_cast<uint8_t>(sign | 0x7f);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return nan;
  float rounded = magnitude;
  const int lowest = 1 - f.bias;  // the smallest normal number's exponent
  if (std::isfinite(value) && value != 0) {
    const int step = std::max(std::ilogb(magnitude), lowest) - f.mantissa;
    rounded = std::ldexp(std::nearbyint(std::ldexp(magnitude, -step)), step);
  }
  if (rounded > f.largest) {
    if (f.unsigned_zero) return nan;
    return static_cast<uint8_t>(sign | (f.infinities ? 0x7c : 0x7e));
  }
  if (rounded == 0) return static_cast<uint8_t>(f.unsigned_zero ? 0 : sign);
  const int exponent = std::max(std::ilogb(rounded), lowest);
  const auto digits = static_cast<int>(std::ldexp(rounded, f.mantissa - exponent));
  // The leading digit of a normal number adds one to the exponent's field, a denormal one has none.
  return static_cast<uint8_t>(sign | (((exponent - lowest) << f.mantissa) + digits));
}

float float8_to_float(uint8_t bits, DType type) {
  if (type == DType::Float8E8M0FNU)
    return bits == 0xff ? std::nanf("") : std::ldexp(1.0F, bits - 127);
  const Float8Format f = format_of(type);
  const int magnitude = bits & 0x7f;
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  const int field = magnitude >> f.mantissa;
  const int digits = magnitude & ((1 << f.mantissa) - 1);
  if (f.unsigned_zero && bits == 0x80) return std::nanf("");
  if (f.infinities && field == 0x1f) return digits == 0 ? sign * HUGE_VALF : std::nanf("");
  if (!f.unsigned_zero && !f.infinities && magnitude == 0x7f) return std::nanf("");
  if (field == 0) return sign * std::ldexp(static_cast<float>(digits), 1 - f.bias - f.mantissa);
  return sign *
         std::ldexp(static_cast<float>(digits + (1 << f.mantissa)), field - f.bias - f.mantissa);
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
