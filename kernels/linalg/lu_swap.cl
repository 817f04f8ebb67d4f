// Applies row interchanges to matrices: swaps row first + i with row pivots[i] - 1, in order, or in reverse
// order (BACKWARD). Columns [skip, skip + 32) are left out. A complex number counts as two columns (PARTS).
// A work-item takes 16 columns (CPU_STYLE) or one. TYPE, PARTS, CPU_STYLE, BACKWARD
#if CPU_STYLE
#define MASK i32
#endif
#include "linalg.h"
#if CPU_STYLE
#define WIDTH 16
#define ITEM ONE_ITEM
#else
#define WIDTH 1
#define ITEM
#endif

ITEM __kernel void swap(__global void *a_base, ulong a_offset, __global const void *pivot_base,
                        ulong pivot_offset, long skip, const LinalgParams p) {
  const long chunks = (p.columns + WIDTH - 1) / WIDTH, m = get_global_id(0) / chunks;
  if (m >= p.count) return;
  long column = (get_global_id(0) - m * chunks) * WIDTH;
  if (column >= skip) column += PANEL * PARTS;
  __global STYPE(TYPE) *a = AT(TYPE, a_base, a_offset) + m * p.a_batch + column;
  __global const int *pivots = AT_CONST(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  for (long k = 0; k < p.steps; ++k) {
    const long i = BACKWARD ? p.steps - 1 - k : k;
    const long x = (p.first + i) * p.a_row, y = (pivots[i] - 1) * p.a_row;
    if (x == y) continue;
#if CPU_STYLE
    const T16 held = LOAD16(TYPE, a, x), other = LOAD16(TYPE, a, y);
    STORE16(TYPE, a, x, other);
    STORE16(TYPE, a, y, held);
#else
    const T held = a[x];
    a[x] = a[y];
    a[y] = held;
#endif
  }
}
