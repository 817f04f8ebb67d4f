// Maximum over windows with the position of the maximum in its plane; A is the element type, LOWEST its
// lowest value. In row-major order the first of equal elements counts, and the last NaN. A work-item takes
// output elements, or output rows where CPU_STYLE is 1. ADAPTIVE: windows are those of adaptive pooling.
#include "types.h"
#include "self_comparison.h"
#include "range.h"
#include "pool_windows.h"

typedef CTYPE(A) T;

INLINE int first_inside(int start, int step) {
  return start < 0 ? start + (-start + step - 1) / step * step : start;
}

INLINE void max_at(const PoolParams p, __global const STYPE(A) *in, __global STYPE(A) *out,
                   __global long *indices, int y, int x, long to) {
#if ADAPTIVE
  const int y0 = adaptive_begin(p, 0, y), y1 = adaptive_end(p, 0, y), step_y = 1;
  const int x0 = adaptive_begin(p, 1, x), x1 = adaptive_end(p, 1, x), step_x = 1;
#else
  const int top = y * p.stride[0] - p.padding[0], left = x * p.stride[1] - p.padding[1];
  const int step_y = p.dilation[0], step_x = p.dilation[1];
  const int y0 = first_inside(top, step_y), y1 = min(top + p.kernel_size[0] * step_y, p.in[0]);
  const int x0 = first_inside(left, step_x), x1 = min(left + p.kernel_size[1] * step_x, p.in[1]);
#endif
  T best = LOWEST;
  int at = y0 < y1 && x0 < x1 ? y0 * p.in[1] + x0 : 0;
  for (int iy = y0; iy < y1; iy += step_y)
    for (int ix = x0; ix < x1; ix += step_x) {
      const T v = LOAD(A, in, iy * p.in[1] + ix);
      if (v > best || v != v) {
        best = v;
        at = iy * p.in[1] + ix;
      }
    }
  STORE(A, out, to, best);
  indices[to] = at;
}

GROUP __kernel void max_pool(__global void *out_base, ulong out_offset, __global void *index_base,
                             ulong index_offset, __global const void *in_base, ulong in_offset,
                             const PoolParams p) {
  __global STYPE(A) *out = AT(A, out_base, out_offset);
  __global long *indices = AT(i64, index_base, index_offset);
  __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset);
  const long area = (long)p.in[0] * p.in[1];
  FOR_EACH(i, p.pieces, p.per_item) {
#if CPU_STYLE
    const int y = i % p.out[0];
    for (int x = 0; x < p.out[1]; ++x)
      max_at(p, in + i / p.out[0] * area, out, indices, y, x, i * p.out[1] + x);
#else
    const INDEX row = (INDEX)i / (INDEX)p.out[1], plane = row / (INDEX)p.out[0];
    max_at(p, in + plane * area, out, indices, (int)(row - plane * p.out[0]),
           (int)((INDEX)i - row * p.out[1]), i);
#endif
  }
}
