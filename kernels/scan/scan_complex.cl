// logcumsumexp of complex numbers in a row-major [outer, n, inner]: a work-item goes along n, in the order of
// ATen's kernel, because another order could give imaginary parts that differ by 2 pi. TYPE, PART
#include "complex.h"
#include "range.h"

GROUP __kernel void scan(__global const void *in_base, ulong in_offset, __global void *out_base,
                         ulong out_offset, long count, long n, long inner, long per_item) {
  __global const STYPE(TYPE) *in = AT_CONST(TYPE, in_base, in_offset);
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset);
  FOR_EACH(k, count, per_item) {
    const long start = k / inner * n * inner + k % inner;
    cplx sum = CLOAD(TYPE, in, start);
    CSTORE(TYPE, out, start, sum);
    for (long i = 1; i < n; ++i) {
      sum = clogaddexp(CLOAD(TYPE, in, start + i * inner), sum);
      CSTORE(TYPE, out, start + i * inner, sum);
    }
  }
}
