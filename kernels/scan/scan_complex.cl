// logcumsumexp of complex64 in a row-major [outer, n, inner]: a work-item goes along n, in the order of
// ATen's kernel, because another order could give imaginary parts that differ by 2 pi.
#include "complex.h"
#include "range.h"

GROUP __kernel void scan(__global const void *in_base, ulong in_offset, __global void *out_base,
                         ulong out_offset, long count, long n, long inner, long per_item) {
  __global const float2 *in = AT_CONST(c64, in_base, in_offset);
  __global float2 *out = AT(c64, out_base, out_offset);
  FOR_EACH(k, count, per_item) {
    const long start = k / inner * n * inner + k % inner;
    float2 sum = in[start];
    out[start] = sum;
    for (long i = 1; i < n; ++i) {
      sum = clogaddexp(in[start + i * inner], sum);
      out[start + i * inner] = sum;
    }
  }
}
