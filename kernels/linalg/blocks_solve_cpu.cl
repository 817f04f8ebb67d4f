// Solves T X = B in place for a lower triangular T of at most 32 rows, for CPU drivers: a work-item takes 16
// columns of one matrix. Negative strides of T and between the rows of B make this the solve of an upper
// triangle. TYPE, UNIT
#include "linalg.h"

ONE_ITEM __kernel void solve(__global const void *a_base, ulong a_offset, __global void *b_base,
                             ulong b_offset, const LinalgParams p) {
  const long chunks = (p.columns + 15) / 16, m = get_global_id(0) / chunks;
  __global const STYPE(TYPE) *a = AT_CONST(TYPE, a_base, a_offset) + m * p.a_batch;
  __global STYPE(TYPE) *x = AT(TYPE, b_base, b_offset) + m * p.b_batch + (get_global_id(0) - m * chunks) * 16;
  for (long i = 0; i < p.rows; ++i) {
    T16 sum = LOAD16(TYPE, x, i * p.b_row);
    for (long j = 0; j < i; ++j) sum -= a[i * p.a_row + j * p.a_col] * LOAD16(TYPE, x, j * p.b_row);
#if !UNIT
    sum /= a[i * (p.a_row + p.a_col)];
#endif
    STORE16(TYPE, x, i * p.b_row, sum);
  }
}
