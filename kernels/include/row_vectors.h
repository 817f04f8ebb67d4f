// Vectors of 16 along a row of a float map, for convolutions with few channels in a group on CPU drivers.
// Defines: TYPE, STRIDE (1, 2; 0, if it is not set: p.stride_x decides).
#ifndef OCLTENSOR_ROW_VECTORS_H
#define OCLTENSOR_ROW_VECTORS_H
#include "types.h"
#ifndef STRIDE
#define STRIDE 0
#endif

INLINE float16 load_row(__global const float *x, long stride) {
#if STRIDE == 1
  return vload16(0, x);
#elif STRIDE == 2
  const float16 a = vload16(0, x), b = vload16(1, x);
  return (float16)(a.even, b.even);
#else
  float lane[16];
  ROLLED for (int i = 0; i < 16; ++i) lane[i] = x[i * stride];
  return vload16(0, lane);
#endif
}

// n (1 to 16, more counts as 16) elements.
INLINE void store_row(float16 v, __global STYPE(TYPE) *y, long col, long n) {
  if (col == 1 && n >= 16) return STORE16(TYPE, y, 0, v);
  if (sizeof(STYPE(TYPE)) == 4 && col == 1) {
    __global float *f = (__global float *)y;
    float8 a = v.lo;
    if (n & 8) { vstore8(a, 0, f); f += 8; a = v.hi; }
    float4 b = a.lo;
    if (n & 4) { vstore4(b, 0, f); f += 4; b = a.hi; }
    float2 c = b.lo;
    if (n & 2) { vstore2(c, 0, f); f += 2; c = b.hi; }
    if (n & 1) *f = c.x;
    return;
  }
  float lane[16];
  vstore16(v, 0, lane);
  ROLLED for (long i = 0; i < min(n, 16L); ++i) STORE(TYPE, y, i * col, lane[i]);
}

// n elements; the rest is zero.
INLINE float16 load_row_part(__global const STYPE(TYPE) *y, long col, long n) {
  if (col == 1 && n >= 16) return LOAD16(TYPE, y, 0);
  float lane[16];
  vstore16((float16)(0), 0, lane);
  ROLLED for (long i = 0; i < min(n, 16L); ++i) lane[i] = LOAD(TYPE, y, i * col);
  return vload16(0, lane);
}
#endif
