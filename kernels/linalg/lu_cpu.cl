// LU factorisation of a panel of 32 columns with partial pivoting, for CPU drivers: one work-item per matrix.
// Pivots count from 1 in the whole matrix. TYPE, MASK, PIVOT
#include "linalg.h"

ONE_ITEM __kernel void lu(__global void *a_base, ulong a_offset, __global void *pivot_base,
                          ulong pivot_offset, __global void *info_base, ulong info_offset,
                          const LinalgParams p) {
  const long m = get_global_id(0);
  __global STYPE(TYPE) *a = AT(TYPE, a_base, a_offset) + m * p.a_batch;
  __global int *pivots = AT(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  __global int *info = AT(i32, info_base, info_offset) + m;
  for (long i = 0; i < p.steps; ++i) {
    __global STYPE(TYPE) *row = a + i * p.a_row;
    long best = i;
#if PIVOT
    T most = fabs(row[i]);
    for (long r = i + 1; r < p.rows; ++r) {
      const T size = fabs(a[r * p.a_row + i]);
      if (size > most) most = size, best = r;
    }
#endif
    pivots[i] = (int)(p.first + best + 1);
    T16 upper[2];
    UNROLL for (int v = 0; v < 2; ++v) {
      upper[v] = LOAD16(TYPE, a, best * p.a_row + 16 * v);
      const T16 old = LOAD16(TYPE, row, 16 * v);
      STORE16(TYPE, a, best * p.a_row + 16 * v, old);
      STORE16(TYPE, row, 16 * v, upper[v]);
    }
    const T pivot = row[i];
    if (pivot == 0) {
      if (*info == 0) *info = (int)(p.first + i + 1);
      continue;
    }
    const M16 right0 = RIGHT_OF(i, 0), right1 = RIGHT_OF(i, 1);
    for (long r = i + 1; r < p.rows; ++r) {
      __global STYPE(TYPE) *at = a + r * p.a_row;
      const T factor = at[i] / pivot;
      if (i < 15) {
        const T16 x = LOAD16(TYPE, at, 0);
        STORE16(TYPE, at, 0, select(x, x - factor * upper[0], right0));
      }
      const T16 y = LOAD16(TYPE, at, 16);
      STORE16(TYPE, at, 16, select(y, y - factor * upper[1], right1));
      at[i] = factor;
    }
  }
}
