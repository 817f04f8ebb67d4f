// float64 as its bits, for devices that have none: conversions by integer arithmetic, rounded to nearest even
// as in IEEE 754. `rest` is the bits that are shifted out; a `tie` is half a unit of the last place that
// remains.
#ifndef OCLTENSOR_SOFT_DOUBLE_H
#define OCLTENSOR_SOFT_DOUBLE_H

#define DOUBLE_FRACTION 0xfffffffffffffUL
#define DOUBLE_SIGN 0x8000000000000000UL

INLINE ulong round_to_even(ulong kept, ulong rest, ulong tie) {
  return kept + (rest > tie || (rest == tie && (kept & 1)));
}

INLINE ulong double_of_float(uint u) {
  const ulong sign = (ulong)(u >> 31) << 63;
  const uint exponent = (u >> 23) & 0xff;
  uint fraction = u & 0x7fffff;
  if (exponent == 0xff) return sign | 0x7ff0000000000000UL | ((ulong)fraction << 29);
  if (exponent != 0) return sign | ((ulong)(exponent + 896) << 52) | ((ulong)fraction << 29);
  if (fraction == 0) return sign;
  const uint shift = clz(fraction) - 8;  // a denormal: its highest bit becomes the hidden one
  fraction = (fraction << shift) & 0x7fffff;
  return sign | ((ulong)(897 - shift) << 52) | ((ulong)fraction << 29);
}

INLINE uint float_of_double(ulong u) {
  const uint sign = (uint)(u >> 63) << 31;
  const int exponent = (int)((u >> 52) & 0x7ff) - 896;
  const ulong fraction = u & DOUBLE_FRACTION;
  if (exponent == 0x7ff - 896)
    return sign | 0x7f800000u | (fraction != 0 ? 0x400000u | (uint)(fraction >> 29) : 0);
  if (exponent >= 0xff) return sign | 0x7f800000u;
  // A denormal float stores the hidden bit explicitly, and more bits are shifted out.
  const ulong whole = exponent > 0 ? fraction : fraction | (exponent > -896 ? DOUBLE_FRACTION + 1 : 0);
  const int lost = exponent > 0 ? 29 : min(30 - exponent, 63);
  const ulong kept = (exponent > 0 ? (ulong)exponent << 23 : 0) + (whole >> lost),
              rest = whole & ((1UL << lost) - 1);
  return sign | (uint)round_to_even(kept, rest, 1UL << (lost - 1));
}

INLINE ulong double_of_long(long v) {
  if (v == 0) return 0;
  // By bit operations, because Mesa 22.3 evaluates comparisons of a widened int as false.
  const ulong sign = (ulong)v & DOUBLE_SIGN, minus = -((ulong)v >> 63),
              magnitude = ((ulong)v ^ minus) - minus;
  const int shift = clz(magnitude);
  const ulong whole = magnitude << shift, kept = (whole >> 11) & DOUBLE_FRACTION;
  return sign | round_to_even(((ulong)(1086 - shift) << 52) + kept, whole & 0x7ff, 0x400);
}

// Truncates; a number that no long holds gives the smallest long, as on x86.
INLINE long long_of_double(ulong u) {
  const int exponent = (int)((u >> 52) & 0x7ff) - 1023;
  if (exponent < 0) return 0;
  if (exponent >= 63) return LONG_MIN;
  const ulong whole = (u & DOUBLE_FRACTION) | (DOUBLE_FRACTION + 1);
  const long v = (long)(exponent <= 52 ? whole >> (52 - exponent) : whole << (exponent - 52));
  return u >> 63 ? -v : v;
}
#endif
