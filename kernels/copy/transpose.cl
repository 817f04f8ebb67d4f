// Copies that swap dimensions, for CPU drivers: dimension 0 is contiguous in the target, dimension 1 in the
// source. A work-item takes a block of both dimensions, by transposes of 16 x 16 in registers.
// Defines: TYPE, an integer type of 1, 2 or 4 bytes, because elements are only moved.
#include "pointwise_params.h"
#include "quotient.h"
#include "transpose.h"

#define BLOCK 64  // whole cache lines on both sides

INLINE void copy_tile(__global STYPE(TYPE) *out, long out_step, __global const STYPE(TYPE) *in,
                      long in_step) {
  float16 r[16];
  UNROLL for (int i = 0; i < 16; ++i) r[i] = as_float16(convert_int16(LOAD16(TYPE, in, i * in_step)));
  transpose16(r);
  UNROLL for (int i = 0; i < 16; ++i) STORE16(TYPE, out, i * out_step, TO16(TYPE, as_int16(r[i])));
}

ONE_ITEM __kernel void transpose(__global void *out_base, ulong out_offset, __global const void *in_base,
                                 ulong in_offset, const PointwiseParams p) {
  const long a0 = get_global_id(0) * BLOCK, a1 = min((long)p.sizes[0], a0 + BLOCK), in_step = p.strides[1][0];
  const long b0 = get_global_id(1) * BLOCK, b1 = min((long)p.sizes[1], b0 + BLOCK),
             out_step = p.strides[0][1];
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset);
  __global const STYPE(TYPE) *in = AT_CONST(TYPE, in_base, in_offset);
  long rest = get_global_id(2);
  for (int k = 2; k < p.rank; ++k) {
    const long next = QUOTIENT(ulong, rest, k), at = rest - next * p.sizes[k];
    rest = next;
    out += at * p.strides[0][k];
    in += at * p.strides[1][k];
  }
  for (long a = a0; a < a1; a += 16)
    for (long b = b0; b < b1; b += 16) {
      if (a + 16 <= a1 && b + 16 <= b1) {
        copy_tile(out + b * out_step + a, out_step, in + a * in_step + b, in_step);
        continue;
      }
      for (long j = b; j < min(b1, b + 16); ++j)
        for (long i = a; i < min(a1, a + 16); ++i) out[j * out_step + i] = in[i * in_step + j];
    }
}
