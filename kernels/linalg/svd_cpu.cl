// One-sided Jacobi rotations for CPU drivers: a work-item makes the rows of two blocks of a matrix
// orthogonal, one pair after the other. TYPE, MASK
#include "svd.h"

INLINE T add_up(const T16 v) {
  T sum = 0;
  union {
    T16 all;
    T each[16];
  } u;
  u.all = v;
  UNROLL for (int i = 0; i < 4; ++i) sum += (u.each[i] + u.each[i + 4]) + (u.each[i + 8] + u.each[i + 12]);
  return sum;
}

// Makes two rows orthogonal. Returns false if they already were.
INLINE bool make_orthogonal(__global T *x, __global T *y, long columns, T limit) {
  T16 xx = 0, yy = 0, xy = 0;
  for (long c = 0; c < columns; c += 16) {
    const T16 a = LOAD16(TYPE, x, c), b = LOAD16(TYPE, y, c);
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  const Rotation r = rotation(add_up(xx), add_up(yy), add_up(xy), limit);
  if (!r.needed) return false;
  for (long c = 0; c < columns; c += 16) {
    const T16 a = LOAD16(TYPE, x, c), b = LOAD16(TYPE, y, c);
    STORE16(TYPE, x, c, a - r.sine * (b + r.half_tangent * a));
    STORE16(TYPE, y, c, b + r.sine * (a - r.half_tangent * b));
  }
  return true;
}

ONE_ITEM __kernel void rotate_rows(__global void *a_base, ulong a_offset, __global void *state_base,
                              ulong state_offset, const LinalgParams p) {
  const long m = get_global_id(0) / (p.blocks / 2);
  const Pair pair = pair_of_blocks(p, get_global_id(0) - m * (p.blocks / 2));
  __global T *a = AT(TYPE, a_base, a_offset) + m * p.a_batch;
  __global int *rotated = AT(i32, state_base, state_offset) + m * SWEEPS;
  const T limit = limit_of(p.columns);
  for (long sweep = p.sweep; sweep < p.sweep + p.sweeps; ++sweep) {
    if (sweep > 0 && !rotated[sweep - 1]) return;
    bool any = false;
    for (long i = 0; i < p.block_rows * (p.round == 0 ? 2 : 1); ++i) {
      const long x = row_of(p, pair, i);
      if (x >= p.rows) continue;
      for (long j = p.round == 0 ? i + 1 : p.block_rows; j < 2 * p.block_rows; ++j) {
        const long y = row_of(p, pair, j);
        if (y < p.rows) any |= make_orthogonal(a + x * p.a_row, a + y * p.a_row, p.columns, limit);
      }
    }
    if (any) rotated[sweep] = 1;
  }
}
