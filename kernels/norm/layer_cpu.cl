// Layer normalisation for CPU drivers: a work-item takes `per` rows of n elements; a row stays in the cache
// for its three sweeps (mean, squared differences, result). All values are taken relative to a pivot among
// the row's elements (pivot.h).
//   COMPUTE; X, W (weight and bias), S (saved statistics), OUT; HAS_WEIGHT, HAS_BIAS; CENTRED: 1, or 0 for
//   the root mean square, which takes no mean and saves none
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "pivot.h"
#include "row_sums.h"

#define X_AT(i) (LOAD(X, x, i) - pivot)
#define X16_AT(i) (LOAD16(X, x, i) - pivot16)
#define SQUARE(i) ((X_AT(i) - mean) * (X_AT(i) - mean))
#define SQUARE16(i) ((X16_AT(i) - mean16) * (X16_AT(i) - mean16))

ONE_ITEM __kernel void layer_norm(__global const void *x_base, ulong x_offset, __global const void *w_base,
                                  ulong w_offset, __global const void *b_base, ulong b_offset,
                                  __global void *out_base, ulong out_offset, __global void *mean_base,
                                  ulong mean_offset, __global void *scale_base, ulong scale_offset, long rows,
                                  long n, long per, ulong eps_) {
  __global const STYPE(W) *w = AT_CONST(W, w_base, w_offset), *b = AT_CONST(W, b_base, b_offset);
  const long first = get_global_id(0) * per;
  for (long r = first; r < min(rows, first + per); ++r) {
    __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset) + r * n;
    __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + r * n;
    const T pivot = CENTRED ? PIVOT(X, x, 0, n) : (T)0;
    const T16 pivot16 = (T16)(pivot);
    T mean = 0, variance;
#if CENTRED
    SUM_ROW(mean, n, X_AT, X16_AT)
    mean /= (T)n;
    STORE(S, AT(S, mean_base, mean_offset), r, pivot + mean);
#endif
    const T16 mean16 = (T16)(mean);
    SUM_ROW(variance, n, SQUARE, SQUARE16)
    const T scale = (T)1 / sqrt(variance / (T)n + FROM_BITS(COMPUTE, eps_));
    const T16 scale16 = (T16)(scale);
    STORE(S, AT(S, scale_base, scale_offset), r, scale);
    long i = 0;
    for (; i + 16 <= n; i += 16) {
      T16 y = (X16_AT(i) - mean16) * scale16;
      if (HAS_WEIGHT) y *= TO16(COMPUTE, LOAD16(W, w, i));
      if (HAS_BIAS) y += TO16(COMPUTE, LOAD16(W, b, i));
      STORE16(OUT, out, i, y);
    }
    ROLLED for (; i < n; ++i) {
      T y = (X_AT(i) - mean) * scale;
      if (HAS_WEIGHT) y *= TO(COMPUTE, LOAD(W, w, i));
      if (HAS_BIAS) y += TO(COMPUTE, LOAD(W, b, i));
      STORE(OUT, out, i, y);
    }
  }
}
