// Backward of layer normalisation for CPU drivers: a work-item takes `per` rows of n. SUMS: it also adds up
// the terms of the weights' gradients, dy * (x - mean) * rstd and dy, in its row of two tensors [items, n].
//   COMPUTE; DY, X, W (weight), S (saved statistics), OUT; HAS_WEIGHT; CENTRED: 1, or 0
//   for the root mean square, which has no mean
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
#define D(i) (LOAD(X, x, i) - mean)
#define D16(i) (LOAD16(X, x, i) - mean16)

ONE_ITEM __kernel void layer_norm(__global const void *dy_base, ulong dy_offset, __global const void *x_base,
                                  ulong x_offset, __global const void *w_base, ulong w_offset,
                                  __global const void *mean_base, ulong mean_offset,
                                  __global const void *scale_base, ulong scale_offset,
                                  __global void *out_base, ulong out_offset, __global void *dot_base,
                                  ulong dot_offset, __global void *sum_base, ulong sum_offset, long rows,
                                  long n, long per) {
  __global const STYPE(W) *w = AT_CONST(W, w_base, w_offset);
  const long first = get_global_id(0) * per;
#if SUMS
  __global T *dots = AT(COMPUTE, dot_base, dot_offset) + get_global_id(0) * n;
  __global T *sums = AT(COMPUTE, sum_base, sum_offset) + get_global_id(0) * n;
  for (long i = 0; i < n; ++i) dots[i] = sums[i] = 0;
#endif
  for (long r = first; r < min(rows, first + per); ++r) {
    __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset) + r * n;
    __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset) + r * n;
    __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + r * n;
    const T mean = !CENTRED ? (T)0 : TO(COMPUTE, LOAD(S, AT_CONST(S, mean_base, mean_offset), r));
    const T scale = TO(COMPUTE, LOAD(S, AT_CONST(S, scale_base, scale_offset), r));
    const T16 mean16 = (T16)(mean);
    T16 sum16 = (T16)((T)0), dot16 = sum16;
    T sum = 0, dot = 0;
    long j = 0;
    ADD_PRODUCTS(sum16, dot16, j, n, G16, D16)
    ROLLED for (; j < n; ++j) {
      sum += G(j);
      dot += G(j) * D(j);
    }
    sum += sum_lanes(sum16);
    dot += sum_lanes(dot16);
    const T16 scale16 = (T16)(scale);
    const T k1 = CENTRED ? scale * sum / (T)n : (T)0, k2 = scale * scale * scale * dot / (T)n;
    long i = 0;
    for (; i + 16 <= n; i += 16) {
      const T16 d = D16(i);
#if SUMS
      const T16 g = TO16(COMPUTE, LOAD16(DY, dy, i));
      STORE16(COMPUTE, dots, i, LOAD16(COMPUTE, dots, i) + g * d * scale16);
      STORE16(COMPUTE, sums, i, LOAD16(COMPUTE, sums, i) + g);
#endif
      STORE16(OUT, out, i, G16(i) * scale16 - (T16)(k1) - d * (T16)(k2));
    }
    ROLLED for (; i < n; ++i) {
      const T d = D(i);
#if SUMS
      const T g = TO(COMPUTE, LOAD(DY, dy, i));
      dots[i] += g * d * scale;
      sums[i] += g;
#endif
      STORE(OUT, out, i, G(i) * scale - k1 - d * k2);
    }
  }
}
