// Cumulative sums, products and log-sums of exponentials (COMBINE of x, y; IDENTITY) of [outer, n, inner] for
// CPU drivers. inner == 1: a work-item takes `per` rows; else `per` blocks of 16 columns. Blocks of BLOCK
// elements are scanned separately and then combined with the total before them, so that rounding errors of
// sums grow slowly. COMPUTE, A (input), OUT
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;

INLINE T join(T x, T y) { return COMBINE; }
INLINE T16 join16(T16 x, T16 y) { return COMBINE; }

INLINE void one(__global const STYPE(A) *in, __global STYPE(OUT) *out, long n, long inner) {
  T before = IDENTITY;
  for (long i = 0; i < n;) {
    const long end = min(n, i + BLOCK);
    T here = IDENTITY;
    for (; i < end; ++i) {
      here = join(here, TO(COMPUTE, LOAD(A, in, i * inner)));
      STORE(OUT, out, i * inner, TO(OUT, join(before, here)));
    }
    before = join(before, here);
  }
}

ONE_ITEM __kernel void scan(__global const void *a_base, ulong a_offset, __global void *out_base,
                            ulong out_offset, long outer, long n, long inner, long per) {
  __global const STYPE(A) *all = AT_CONST(A, a_base, a_offset);
  __global STYPE(OUT) *result = AT(OUT, out_base, out_offset);
  const long blocks = (inner + 15) / 16, first = get_global_id(0) * per;
  for (long b = first; b < min(outer * blocks, first + per); ++b) {
    const long o = b / blocks, c = (b - o * blocks) * 16;
    __global const STYPE(A) *in = all + o * n * inner + c;
    __global STYPE(OUT) *out = result + o * n * inner + c;
    if (c + 16 > inner) {
      for (long k = 0; k < inner - c; ++k) one(in + k, out + k, n, inner);
      continue;
    }
    T16 before = (T16)((T)IDENTITY);
    for (long i = 0; i < n;) {
      const long end = min(n, i + BLOCK);
      T16 here = (T16)((T)IDENTITY);
      for (; i < end; ++i) {
        here = join16(here, TO16(COMPUTE, LOAD16(A, in, i * inner)));
        STORE16(OUT, out, i * inner, TO16(OUT, join16(before, here)));
      }
      before = join16(before, here);
    }
  }
}
