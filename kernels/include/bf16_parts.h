// A float as three bf16 whose sum it is (Henry, Tang and Heinecke, arXiv 1904.06376): exactly for numbers
// from 2^-109 (below to 2^-134) to bf16's largest. A larger number, an infinity or a NaN has a NaN among its
// parts.
#ifndef OCLTENSOR_BF16_PARTS_H
#define OCLTENSOR_BF16_PARTS_H
#include "types.h"

INLINE uint nearest_bf16(float x) {
  const uint u = as_uint(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;  // NaN, which rounding could carry to 0
  return (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
}

// True if the product must be computed in plain float. From 2^64 up products of parts could give inf - inf.
INLINE bool is_refused(float x) {
  const uint size = as_uint(x) & 0x7fffffffu;
  return size != 0 && (size < 0x09000000u || size >= 0x5f800000u);  // 2^-109, 2^64
}

// Stores the parts of eight adjacent numbers; `to` is a multiple of 16 bytes.
INLINE void store_bf16_parts_8(__global ushort *to, ulong bf16_part, float v[8]) {
  UNROLL for (int i = 0; i < 3; ++i) {
    uint bits[8];
    UNROLL for (int e = 0; e < 8; ++e) {
      bits[e] = nearest_bf16(v[e]);
      v[e] -= as_float(bits[e] << 16);
    }
    *(__global uint4 *)(to + i * bf16_part) = (uint4)(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16,
                                                  bits[4] | bits[5] << 16, bits[6] | bits[7] << 16);
  }
}

// Stores the parts of one number, `bf16_part` elements from each other.
INLINE void store_bf16_parts(__global ushort *to, ulong bf16_part, float v) {
  UNROLL for (int i = 0; i < 3; ++i) {
    const uint bits = nearest_bf16(v);
    to[i * bf16_part] = (ushort)bits;
    v -= as_float(bits << 16);
  }
}
#endif
