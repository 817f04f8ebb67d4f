// The 16 lanes of vectors: their sum, and shuffles of two vectors. For kernels of CPU drivers.
#ifndef OCLTENSOR_VECTOR_LANES_H
#define OCLTENSOR_VECTOR_LANES_H
#include "types.h"

INLINE float sum_of_lanes(float16 v) {
  const float8 a = v.lo + v.hi;
  const float4 b = a.lo + a.hi;
  const float2 c = b.lo + b.hi;
  return c.x + c.y;
}

// Joins the first (LOW) or second (HIGH) halves of two vectors of type V, of their halves (QUARTERS), or of
// their quarters (PAIRS).
#define HALVES_LOW(V, a, b) \
  (V)(a.s0, a.s1, a.s2, a.s3, a.s4, a.s5, a.s6, a.s7, b.s0, b.s1, b.s2, b.s3, b.s4, b.s5, b.s6, b.s7)
#define HALVES_HIGH(V, a, b) \
  (V)(a.s8, a.s9, a.sa, a.sb, a.sc, a.sd, a.se, a.sf, b.s8, b.s9, b.sa, b.sb, b.sc, b.sd, b.se, b.sf)
#define QUARTERS_LOW(V, a, b) \
  (V)(a.s0, a.s1, a.s2, a.s3, a.s8, a.s9, a.sa, a.sb, b.s0, b.s1, b.s2, b.s3, b.s8, b.s9, b.sa, b.sb)
#define QUARTERS_HIGH(V, a, b) \
  (V)(a.s4, a.s5, a.s6, a.s7, a.sc, a.sd, a.se, a.sf, b.s4, b.s5, b.s6, b.s7, b.sc, b.sd, b.se, b.sf)
#define PAIRS_LOW(V, a, b) \
  (V)(a.s0, a.s1, a.s4, a.s5, a.s8, a.s9, a.sc, a.sd, b.s0, b.s1, b.s4, b.s5, b.s8, b.s9, b.sc, b.sd)
#define PAIRS_HIGH(V, a, b) \
  (V)(a.s2, a.s3, a.s6, a.s7, a.sa, a.sb, a.se, a.sf, b.s2, b.s3, b.s6, b.s7, b.sa, b.sb, b.se, b.sf)
#endif
