// Gradient of averages over windows for CPU drivers: for a row of the input's gradient, the shares of each
// column of windows are summed over the rows of windows that contain the row, and then added to all columns
// of each window. A is the element type. STEP: the column stride of windows if that is 1 or 2, else 0.
#include "types.h"
#include "range.h"
typedef CTYPE(A) T;
typedef CVEC(A) T16;
#include "pool_average.h"

#define WIDTH 1024  // of the buffers
#define MARGIN 16   // zeros before the sums, as many as the widest window reaches back

// share[x] = the sum over y in ys of the gradient of window (y, x) divided by the window's count.
INLINE void shares(const PoolParams p, T *share, __global const STYPE(A) *out, Cover ys) {
  const int width = p.out[1];
  int x = 0;
#if !ADAPTIVE
  while (x + 16 <= width) {
    const Cover first = cover(p, 1, x);
    if (p.divisor == 0 &&
        (first.count != p.kernel_size[1] || cover(p, 1, x + 15).count != p.kernel_size[1])) {
      T sum = 0;
      for (int y = ys.begin; y < ys.end; ++y)
        sum += LOAD(A, out, (long)y * width + x) / divisor(p, cover(p, 0, y), first);
      share[x++] = sum;
      continue;
    }
    T16 sum = (T16)((T)0);
    for (int y = ys.begin; y < ys.end; ++y)
      sum += LOAD16(A, out, (long)y * width + x) / (T16)(divisor(p, cover(p, 0, y), first));
    vstore16(sum, 0, share + x);
    x += 16;
  }
#endif
  ROLLED for (; x < width; ++x) {
    const Cover at = cover(p, 1, x);
    T sum = 0;
    for (int y = ys.begin; y < ys.end; ++y)
      sum += LOAD(A, out, (long)y * width + x) / divisor(p, cover(p, 0, y), at);
    share[x] = sum;
  }
}

#if STEP
// The gradients of positions t, t + STEP, .. t + 15 * STEP of the padded row.
INLINE T16 spread(const PoolParams p, const T *share, int t) {
  T16 sum = (T16)((T)0);
  for (int k = t % STEP; k < p.kernel_size[1]; k += STEP) sum += vload16(0, share + t / STEP - k / STEP);
  return sum;
}

INLINE void store_spread(const PoolParams p, __global STYPE(A) *in, const T *share, int x) {
  const T16 v = spread(p, share, x + p.padding[1]);
#if STEP == 1
  STORE16(A, in, x, v);
#else
  const T16 w = spread(p, share, x + 1 + p.padding[1]);
  STORE16(
      A, in, x,
      (T16)(v.s0, w.s0, v.s1, w.s1, v.s2, w.s2, v.s3, w.s3, v.s4, w.s4, v.s5, w.s5, v.s6, w.s6, v.s7, w.s7));
  if (x + 32 <= p.in[1])
    STORE16(A, in, x + 16,
            (T16)(v.s8, w.s8, v.s9, w.s9, v.sa, w.sa, v.sb, w.sb, v.sc, w.sc, v.sd, w.sd, v.se, w.se, v.sf,
                  w.sf));
#endif
}
#endif

GROUP __kernel void average_backward(__global void *target_base, ulong target_offset,
                                     __global const void *source_base, ulong source_offset,
                                     const PoolParams p) {
  T buffer[MARGIN + WIDTH];
  T *share = buffer + MARGIN;
  for (int i = 0; i < MARGIN + WIDTH; ++i) buffer[i] = 0;
  FOR_EACH(i, p.pieces, p.per_item) {
    __global STYPE(A) *in = AT(A, target_base, target_offset) + i * p.in[1];
    __global const STYPE(A) *out =
        AT_CONST(A, source_base, source_offset) + i / p.in[0] * p.out[0] * p.out[1];
    shares(p, share, out, covered_by(p, 0, i % p.in[0]));
    int x = 0;
#if STEP
    if (p.in[1] >= 16) {
      for (; x + 16 <= p.in[1]; x += 16 * STEP) store_spread(p, in, share, x);
      if (p.in[1] % (16 * STEP) != 0) store_spread(p, in, share, p.in[1] - 16);
      x = p.in[1];
    }
#endif
    for (; x < p.in[1]; ++x) {
      const Cover xs = covered_by(p, 1, x);
      T sum = 0;
      for (int ox = xs.begin; ox < xs.end; ++ox) sum += share[ox];
      STORE(A, in, x, sum);
    }
  }
}
