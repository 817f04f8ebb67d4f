// A float as three bf16 whose sum it is (Henry, Tang and Heinecke, arXiv 1904.06376): exactly for numbers from 2^-109 up, to
// 2^-134 below.
#ifndef OCLTENSOR_PLANES_H
#define OCLTENSOR_PLANES_H
#include "types.h"

INLINE uint nearest_bf16(float x) {
  const uint u = as_uint(x);
  return (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
}

// Its parts, `plane` elements from each other.
INLINE void store_planes(__global ushort *to, ulong plane, float v) {
  UNROLL for (int i = 0; i < 3; ++i) {
    const uint bits = nearest_bf16(v);
    to[i * plane] = (ushort)bits;
    v -= as_float(bits << 16);
  }
}
#endif
