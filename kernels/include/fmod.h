// fmod for the floating type T and its vector, exact for all finite numbers. PoCL 3.1's vector fmod is wrong
// in float64 if any lane is infinite or subnormal (seen: fmod(7, 4) = 0.875 beside an infinity), and NaN
// where a / b is large.
#ifndef OCLTENSOR_FMOD_H
#define OCLTENSOR_FMOD_H
// Truncated quotients below 2^QUOTIENT_BITS are at most 1 off: OpenCL divides floats with an error of 2.5
// ulp, doubles with half an ulp.
#define QUOTIENT_BITS (sizeof(T) == 8 ? 50 : 20)
// x mod y for 0 <= x, 0 < y and x / y below that limit. The remainder of the right quotient is representable,
// so fma gives it exactly; a remainder outside [0, y) may be rounded, but never to the other side of 0 or y.
#define FMOD_NEAR(V)                                                      \
  INLINE V OVERLOAD fmod_near(V x, V y) {                                 \
    const V q = trunc(x / y), r = fma(-q, y, x);                          \
    const V more = fma((V)(-1) - q, y, x), less = fma((V)(1) - q, y, x);  \
    return (x < y) ? x : (r < (V)(0)) ? less : (r >= y) ? more : r;       \
  }
FMOD_NEAR(T)
// x mod y for 0 <= x, 0 <= y and any quotient: long division, QUOTIENT_BITS at a time. 64 steps cover the
// exponents of double; the bound keeps a device that flushes subnormals from running for ever.
INLINE T fmod_far(T x, T y) {
  if (!(x < (T)INFINITY) || y == (T)0) return (T)NAN;
  for (int i = 0; i < 64 && x >= y; ++i)
    x = fmod_near(x, ldexp(y, max(0, ilogb(x) - ilogb(y) - QUOTIENT_BITS + 1)));
  return x;
}
INLINE T OVERLOAD fmod_(T a, T b) {
  const T x = fabs(a), y = fabs(b);
  const T r = (x / y >= (T)(1L << QUOTIENT_BITS)) ? fmod_far(x, y) : fmod_near(x, y);
  return copysign(r, a);
}
#ifdef VECTORS
FMOD_NEAR(T16)
INLINE T16 OVERLOAD fmod_(T16 a, T16 b) {
  const T16 x = fabs(a), y = fabs(b);
  if (any(x / y >= (T16)((T)(1L << QUOTIENT_BITS)))) {
    T ra[16], rb[16];
    vstore16(a, 0, ra);
    vstore16(b, 0, rb);
    for (int i = 0; i < 16; ++i) ra[i] = fmod_(ra[i], rb[i]);
    return vload16(0, ra);
  }
  return copysign(fmod_near(x, y), a);
}
#endif
#endif
