// Applies row interchanges to matrices, for CPUs: swaps row first + i with row pivots[i] - 1, in order, or in
// reverse order (BACKWARD). The `skipped` columns from `skip` on are left out. A complex number counts as two
// columns. A work-item takes 16 columns. TYPE, BACKWARD
#define MASK i32
#include "linalg.h"
#define WIDTH 16

ONE_ITEM __kernel void swap(__global void *a_base, ulong a_offset, __global const void *pivot_base,
                            ulong pivot_offset, long skip, long skipped, const LinalgParams p) {
  const long chunks = (p.columns + WIDTH - 1) / WIDTH, m = get_global_id(0) / chunks;
  long column = (get_global_id(0) - m * chunks) * WIDTH;
  if (column >= skip) column += skipped;
  __global STYPE(TYPE) *a = AT(TYPE, a_base, a_offset) + m * p.a_batch + column;
  __global const int *pivots = AT_CONST(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  for (long k = 0; k < p.steps; ++k) {
    const long i = BACKWARD ? p.steps - 1 - k : k;
    const long x = (p.first + i) * p.a_row, y = (pivots[i] - 1) * p.a_row;
    if (x == y) continue;
    const T16 held = LOAD16(TYPE, a, x), other = LOAD16(TYPE, a, y);
    STORE16(TYPE, a, x, other);
    STORE16(TYPE, a, y, held);
  }
}
