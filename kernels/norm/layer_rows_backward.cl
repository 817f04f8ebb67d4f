// Backward of layer normalisation with respect to its input, for CPU drivers: a work-item takes `per` rows of n.
//   COMPUTE; DY, X, W (weight), S (saved statistics), OUT; HAS_WEIGHT
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "row_sums.h"

#if HAS_WEIGHT
#define G(i) (TO(COMPUTE, LOAD(DY, dy, i)) * TO(COMPUTE, LOAD(W, w, i)))
#define G16(i) (TO16(COMPUTE, LOAD16(DY, dy, i)) * TO16(COMPUTE, LOAD16(W, w, i)))
#else
#define G(i) TO(COMPUTE, LOAD(DY, dy, i))
#define G16(i) TO16(COMPUTE, LOAD16(DY, dy, i))
#endif
#define DOT(i) (G(i) * (LOAD(X, x, i) - mean))
#define DOT16(i) (G16(i) * (LOAD16(X, x, i) - mean16))

ONE_ITEM __kernel void layer_norm(__global const void *dy_base, ulong dy_offset, __global const void *x_base,
                                  ulong x_offset, __global const void *w_base, ulong w_offset,
                                  __global const void *mean_base, ulong mean_offset, __global const void *scale_base,
                                  ulong scale_offset, __global void *out_base, ulong out_offset, long rows, long n,
                                  long per) {
  __global const STYPE(W) *w = AT_CONST(W, w_base, w_offset);
  const long first = get_global_id(0) * per;
  for (long r = first; r < min(rows, first + per); ++r) {
    __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset) + r * n;
    __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset) + r * n;
    __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + r * n;
    const T mean = TO(COMPUTE, LOAD(S, AT_CONST(S, mean_base, mean_offset), r));
    const T scale = TO(COMPUTE, LOAD(S, AT_CONST(S, scale_base, scale_offset), r));
    const T16 mean16 = (T16)(mean);
    T sum, dot;
    SUM_ROW(sum, n, G, G16)
    SUM_ROW(dot, n, DOT, DOT16)
    const T k1 = scale * sum / (T)n, k2 = scale * scale * scale * dot / (T)n;
    long i = 0;
    for (; i + 16 <= n; i += 16)
      STORE16(OUT, out, i, G16(i) * (T16)(scale) - (T16)(k1) - (LOAD16(X, x, i) - mean16) * (T16)(k2));
    ROLLED for (; i < n; ++i) STORE(OUT, out, i, G(i) * scale - k1 - (LOAD(X, x, i) - mean) * k2);
  }
}
