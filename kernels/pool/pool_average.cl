// Averages over windows (avg_pool2d, or ADAPTIVE) and their gradient; A is the element type. A work-item
// takes elements (CPU_STYLE: rows) of the tensor it writes: the output forwards, grad_input backwards. STEP:
// the column stride of windows if that is 1 or 2, else 0. INDEX: the type that counts elements, uint if they
// are below 2^31.
#include "types.h"
#include "row_pieces.h"
typedef CTYPE(A) T;
#include "pool_average.h"

INLINE T sum_of_run(__global const STYPE(A) *p, int n) {
  T sum = 0;
  int i = 0;
#if CPU_STYLE
  if (n >= 16) {
    CVEC(A) sums = (CVEC(A))((T)0);
    for (; i <= n - 16; i += 16) sums += LOAD16(A, p, i);
    T lane[16];
    vstore16(sums, 0, lane);
    for (int k = 0; k < 16; ++k) sum += lane[k];
  }
#endif
  for (; i < n; ++i) sum += LOAD(A, p, i);
  return sum;
}

INLINE void average_at(const PoolParams p, __global STYPE(A) *out, __global const STYPE(A) *in, Cover y,
                       int column) {
  const Cover x = cover(p, 1, column);
  T sum = 0;
  if (x.begin == 0 && x.end == p.in[1]) {  // whole rows: one run
    sum = sum_of_run(in + (long)y.begin * p.in[1], (y.end - y.begin) * p.in[1]);
  } else {
    for (int iy = y.begin; iy < y.end; ++iy)
      sum += sum_of_run(in + (long)iy * p.in[1] + x.begin, x.end - x.begin);
  }
  STORE(A, out, column, sum / divisor(p, y, x));
}

#if CPU_STYLE && STEP
// Elements 0, STEP, .. 15 * STEP.
INLINE CVEC(A) every_step(__global const STYPE(A) *p) {
#if STEP == 2
  return (CVEC(A))(LOAD16(A, p, 0).even, LOAD16(A, p, 15).odd);
#else
  return LOAD16(A, p, 0);
#endif
}

// True if the windows of outputs column .. column + 15 are inside the row.
INLINE bool inside(const PoolParams p, int column) {
  const int left = column * STEP - p.padding[1];
  return left >= 0 && column + 16 <= p.out[1] && left + 15 * STEP + p.kernel_size[1] <= p.in[1];
}

// Computes these 16 averages.
INLINE void averages_at(const PoolParams p, __global STYPE(A) *out, __global const STYPE(A) *in, Cover y,
                        int column) {
  const Cover x = cover(p, 1, column);
  CVEC(A) sum = (CVEC(A))((T)0);
  for (int iy = y.begin; iy < y.end; ++iy) {
    CVEC(A) run = (CVEC(A))((T)0);
    for (int k = x.begin; k < x.end; ++k) run += every_step(in + (long)iy * p.in[1] + k);
    sum += run;
  }
  STORE16(A, out, column, sum / (CVEC(A))(divisor(p, y, x)));
}
#endif

// A row of averages; vectors wherever they fit, the last one overlapping the one before it.
INLINE void average_row(const PoolParams p, __global STYPE(A) *out, __global const STYPE(A) *in, Cover y) {
  for (int x = 0; x < p.out[1]; ++x) {
#if CPU_STYLE && STEP
    for (; inside(p, x); x += 16) averages_at(p, out, in, y, x);
    if (x >= p.out[1]) break;
    if (x >= 16 && inside(p, p.out[1] - 16)) {
      averages_at(p, out, in, y, p.out[1] - 16);
      break;
    }
#endif
    average_at(p, out, in, y, x);
  }
}

INLINE void gradient_at(const PoolParams p, __global STYPE(A) *in, __global const STYPE(A) *out, Cover ys,
                        int column) {
  const Cover xs = covered_by(p, 1, column);
  T sum = 0;
  for (int oy = ys.begin; oy < ys.end; ++oy) {
    const Cover y = cover(p, 0, oy);
    for (int ox = xs.begin; ox < xs.end; ++ox)
      sum += LOAD(A, out, (long)oy * p.out[1] + ox) / divisor(p, y, cover(p, 1, ox));
  }
  STORE(A, in, column, sum);
}

GROUP __kernel void average(__global void *target_base, ulong target_offset, __global const void *source_base,
                            ulong source_offset, const PoolParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = ROW_OF(i, p.out[1]), plane = row / (INDEX)p.out[0];
    __global STYPE(A) *out = AT(A, target_base, target_offset) + (long)row * p.out[1];
    __global const STYPE(A) *in = AT_CONST(A, source_base, source_offset) + (long)plane * p.in[0] * p.in[1];
    const Cover y = cover(p, 0, (int)(row - plane * p.out[0]));
#if CPU_STYLE
    average_row(p, out, in, y);
#else
    average_at(p, out, in, y, (int)((INDEX)i - row * p.out[1]));
#endif
  }
}

GROUP __kernel void average_backward(__global void *target_base, ulong target_offset,
                                     __global const void *source_base, ulong source_offset,
                                     const PoolParams p) {
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = ROW_OF(i, p.in[1]), plane = row / (INDEX)p.in[0];
    __global STYPE(A) *in = AT(A, target_base, target_offset) + (long)row * p.in[1];
    __global const STYPE(A) *out =
        AT_CONST(A, source_base, source_offset) + (long)plane * p.out[0] * p.out[1];
    const Cover ys = covered_by(p, 0, (int)(row - plane * p.in[0]));
    FOR_COLUMNS(x, i, p.in[1]) gradient_at(p, in, out, ys, x);
  }
}
