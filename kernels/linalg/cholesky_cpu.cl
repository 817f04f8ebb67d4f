// Factors a diagonal block of at most 32 rows, A = U^T U, from its upper triangle, for CPU drivers: one
// work-item per matrix. Elements below the diagonal are undefined afterwards. TYPE, MASK
#include "linalg.h"

ONE_ITEM __kernel void cholesky(__global void *a_base, ulong a_offset, __global void *info_base,
                                ulong info_offset, const LinalgParams p) {
  const long m = get_global_id(0);
  __global STYPE(TYPE) *a = AT(TYPE, a_base, a_offset) + m * p.a_batch;
  __global int *info = AT(i32, info_base, info_offset) + m;
  for (long k = 0; k < p.rows; ++k) {
    __global STYPE(TYPE) *row = a + k * p.a_row;
    const T pivot = row[k];
    if (!(pivot > 0) && *info == 0) *info = (int)(p.first + k + 1);
    const T root = sqrt(pivot);
    const T16 left = LOAD16(TYPE, row, 0) / root, right = LOAD16(TYPE, row, 16) / root;
    STORE16(TYPE, row, 0, left);
    STORE16(TYPE, row, 16, right);
    row[k] = root;
    for (long r = k + 1; r < p.rows; ++r) {
      const T x = row[r];
      __global STYPE(TYPE) *at = a + r * p.a_row;
      if (r < 16) STORE16(TYPE, at, 0, LOAD16(TYPE, at, 0) - x * left);
      STORE16(TYPE, at, 16, LOAD16(TYPE, at, 16) - x * right);
    }
  }
}
