// Floats of 8 bits, in memory only: they are computed in float, and rounded to nearest even (P. Micikevicius
// et al., "FP8 Formats for Deep Learning", 2022). As in ATen, what lies beyond the largest number becomes
// infinity in e5m2, which alone has one, the largest number in e4m3fn, and NaN in the "fnuz" types. These
// have no negative zero: its bits are their only NaN. e8m0fnu has powers of two alone, in a float's exponent:
// no sign, no zero, and NaN for what is not finite.
#ifndef OCLTENSOR_FLOAT8_H
#define OCLTENSOR_FLOAT8_H
#include "types.h"

// mantissa: its bits; bias: the exponent's; largest: the largest number.
INLINE float float8_value(uchar bits, int mantissa, int bias, bool unsigned_zero, bool infinities) {
  const int magnitude = bits & 0x7f, field = magnitude >> mantissa;
  const int digits = magnitude & ((1 << mantissa) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (unsigned_zero ? bits == 0x80 : !infinities && magnitude == 0x7f) return NAN;
  if (infinities && field == 0x1f) return digits == 0 ? sign * INFINITY : NAN;
  const int normal = field == 0 ? 0 : 1 << mantissa;
  return sign * ldexp((float)(digits + normal), max(field, 1) - bias - mantissa);
}
INLINE uchar float8_bits(float v, int mantissa, int bias, float largest, bool unsigned_zero,
                         bool infinities) {
  const int sign = signbit(v) ? 0x80 : 0, lowest = 1 - bias;
  const uchar nan = unsigned_zero ? 0x80 : sign | 0x7f;
  if (isnan(v)) return nan;
  float r = fabs(v);
  if (r < INFINITY && r > 0) {
    const int step = max(ilogb(r), lowest) - mantissa;
    r = ldexp(rint(ldexp(r, -step)), step);
  }
  if (r > largest) return infinities ? sign | 0x7c : unsigned_zero ? nan : sign | 0x7e;
  if (r == 0) return unsigned_zero ? 0 : sign;
  const int exponent = max(ilogb(r), lowest);
  // The leading digit of a normal number adds one to the exponent's field, a denormal one has none.
  return sign | (((exponent - lowest) << mantissa) + (int)ldexp(r, mantissa - exponent));
}

// Of what is below 2^-126, more than half becomes that; else half and more the next power.
INLINE float e8m0_value(uchar bits) {
  return as_float(bits == 0xff ? 0x7fc00000u : bits == 0 ? 0x00400000u : (uint)bits << 23);
}
INLINE uchar e8m0_bits(float v) {
  const uint bits = as_uint(v), exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  return exponent + (exponent > 0 ? mantissa >= 0x400000 : mantissa > 0x400000);
}

// Types of which `value` makes a float of bits, and `bits` the other way.
#define BYTE_TYPE(A, value, bits)                                                       \
  typedef uchar CAT(stype_, A);                                                         \
  typedef float CAT(ctype_, A);                                                         \
  typedef float16 CAT(cvec_, A);                                                        \
  INLINE float CAT(load_, A)(__global const uchar *p, long i) { return value(p[i]); }   \
  INLINE void CAT(store_, A)(__global uchar *p, long i, float v) { p[i] = bits(v); }    \
  INLINE float16 CAT(load16_, A)(__global const uchar *p, long i) {                     \
    float lane[16];                                                                     \
    ROLLED for (int k = 0; k < 16; ++k) lane[k] = CAT(load_, A)(p, i + k);              \
    return vload16(0, lane);                                                            \
  }                                                                                     \
  INLINE void CAT(store16_, A)(__global uchar *p, long i, float16 v) {                  \
    float lane[16];                                                                     \
    vstore16(v, 0, lane);                                                               \
    ROLLED for (int k = 0; k < 16; ++k) CAT(store_, A)(p, i + k, lane[k]);              \
  }
#define FLOAT8_TYPE(A, mantissa, bias, largest, unsigned_zero, infinities)              \
  INLINE float CAT(value_, A)(uchar bits) {                                             \
    return float8_value(bits, mantissa, bias, unsigned_zero, infinities);               \
  }                                                                                     \
  INLINE uchar CAT(bits_, A)(float v) {                                                 \
    return float8_bits(v, mantissa, bias, largest, unsigned_zero, infinities);          \
  }                                                                                     \
  BYTE_TYPE(A, CAT(value_, A), CAT(bits_, A))
FLOAT8_TYPE(e4m3fn, 3, 7, 448, false, false)
FLOAT8_TYPE(e5m2, 2, 15, 57344, false, true)
FLOAT8_TYPE(e4m3fnuz, 3, 8, 240, true, false)
FLOAT8_TYPE(e5m2fnuz, 2, 16, 57344, true, false)
BYTE_TYPE(e8m0fnu, e8m0_value, e8m0_bits)
#define to_e4m3fn(v) convert_float(v)
#define to_e5m2(v) convert_float(v)
#define to_e4m3fnuz(v) convert_float(v)
#define to_e5m2fnuz(v) convert_float(v)
#define to_e8m0fnu(v) convert_float(v)
#define to16_e4m3fn(v) convert_float16(v)
#define to16_e5m2(v) convert_float16(v)
#define to16_e4m3fnuz(v) convert_float16(v)
#define to16_e5m2fnuz(v) convert_float16(v)
#define to16_e8m0fnu(v) convert_float16(v)
#endif
