// Two adjacent elements of a type of floating point by one load: PAIR(A, p) for an address that is a multiple
// of both their sizes.
#ifndef OCLTENSOR_PAIR_H
#define OCLTENSOR_PAIR_H

#include "types.h"

#define PAIR(A, p) CAT(pair_, A)(p)

// Whether pairs of adjacent columns lie so: `steps` is the matrix's width, or'ed with its other strides.
#define LIE_IN_PAIRS(A, p, column_step, steps) \
  ((column_step) == 1 && (steps) % 2 == 0 && (size_t)(p) % (2 * sizeof(STYPE(A))) == 0)

INLINE float2 pair_bool(__global const uchar *p) {
  return convert_float2(*(__global const uchar2 *)p);
}
INLINE float2 pair_f16(__global const half *p) { return vloada_half2(0, p); }
INLINE float2 pair_bf16(__global const ushort *p) {
  return as_float2(convert_uint2(*(__global const ushort2 *)p) << 16);
}
INLINE float2 pair_f32(__global const float *p) { return *(__global const float2 *)p; }

#endif
