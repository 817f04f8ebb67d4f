// Pairs of neighbouring bf16 factors along k, as AVX-512's VDPBF16PS multiplies them: the even one is the low
// half of a uint. An odd length ends with a zero.
#ifndef OCLTENSOR_BF16_PAIRS_H
#define OCLTENSOR_BF16_PAIRS_H
#include "transpose.h"
#include "types.h"

// sum[i] += a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1] in float, for 16 lanes of pairs: "VDPBF16PS" in Intel's
// instruction set reference. Denormal factors and sums count as zero.
INLINE float16 add_pair_products(float16 sum, float16 a, float16 b) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

INLINE int pair_count(long k) { return (k + 1) / 2; }

// One pair: elements 2 i and 2 i + 1 of a line of k elements with this stride.
INLINE uint load_pair(__global const ushort *line, long stride, long i, long k) {
  const uint high = 2 * i + 1 < k ? line[(2 * i + 1) * stride] : 0;
  return line[2 * i * stride] | high << 16;
}

// 16 pairs of a line whose elements are neighbours.
INLINE float16 load_pairs16(__global const ushort *line) {
  return (float16)(as_float8(vload16(0, line)), as_float8(vload16(1, line)));
}

// 16 and 8 pairs of neighbouring lines, of which `low` and `high` are the elements at 2 i and 2 i + 1.
INLINE float16 join16(ushort16 low, ushort16 high) {
  return as_float16(convert_uint16(low) | convert_uint16(high) << 16);
}
INLINE uint8 join8(ushort8 low, ushort8 high) { return convert_uint8(low) | convert_uint8(high) << 16; }
#endif
