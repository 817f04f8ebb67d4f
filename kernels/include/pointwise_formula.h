// The formula of a pointwise kernel as a function over one element and (VECTORS) over a vector of 16.
//   EXPRESSION   in a, b, c, d, s0 .. s3; valid for scalars and for vectors
//   COMPUTE      suffix of the type that it computes in
//   TEST         defined if the formula is a comparison or logical: it then gives 0 or non-zero
//   KIND_A ..    an operand's kind: 0 repeated, 1 contiguous, 2 strided, 3 a number (absent operands, too)
//   MAXIMUM      the largest number of a type, for formulas
//   LANES        defined if the formula is for scalars only
//   LANES_IF_LARGE  the same, but only for vectors with an element of magnitude 2^15 and more
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "math.h"
#include "special.h"

#define V T
#define K(x) ((T)(x))
#ifdef TEST
INLINE uchar formula(T a, T b, T c, T d, T s0, T s1, T s2, T s3) { return (EXPRESSION) != 0; }
#else
INLINE T formula(T a, T b, T c, T d, T s0, T s1, T s2, T s3) { return (T)(EXPRESSION); }
#endif
#undef V
#undef K

#ifdef VECTORS
#define V T16
#define K(x) ((T16)((T)(x)))
#ifdef TEST
INLINE uchar16 formula16(T16 a, T16 b, T16 c, T16 d, T16 s0, T16 s1, T16 s2, T16 s3) {
  return convert_uchar16(EXPRESSION) & (uchar16)(1);
}
#else
#if defined(LANES) || defined(LANES_IF_LARGE)
INLINE T16 by_lanes(T16 a, T16 b, T16 c, T16 d, T16 s0, T16 s1, T16 s2, T16 s3) {
  T ra[16], rb[16], rc[16];
  vstore16(a, 0, ra);
  vstore16(b, 0, rb);
  vstore16(c, 0, rc);
  for (int i = 0; i < 16; ++i) ra[i] = formula(ra[i], rb[i], rc[i], d.s0, s0.s0, s1.s0, s2.s0, s3.s0);
  return vload16(0, ra);
}
#endif
INLINE T16 formula16(T16 a, T16 b, T16 c, T16 d, T16 s0, T16 s1, T16 s2, T16 s3) {
#ifdef LANES
  return by_lanes(a, b, c, d, s0, s1, s2, s3);
#else
#ifdef LANES_IF_LARGE
  if (any(fabs(a) >= (T16)(32768))) return by_lanes(a, b, c, d, s0, s1, s2, s3);
#endif
  return (EXPRESSION);
#endif
}
#endif
#undef V
#undef K
#endif
