// Maximum over windows for CPU drivers, for floating-point types that are computed in float, column stride 1
// or 2: for each output row, computes the maxima of the columns in a padded buffer, then those of the
// windows, 16 at a time. Ties and NaN as in pool_max.cl: the rows of the maxima decide.
#include "types.h"
#include "range.h"
#include "pool_params.h"

#define WIDTH 1024  // of the buffer: padding, a row and the elements past it that the last vector reads
#define NOWHERE 0x7fffffff

INLINE int first_inside(int start, int step) {
  return start < 0 ? start + (-start + step - 1) / step * step : start;
}

INLINE void columns(const PoolParams p, __global const STYPE(A) *in, int top, float *best, int *row) {
  const int width = p.in[1], y0 = first_inside(top, p.dilation[0]);
  const int y1 = min(top + p.kernel_size[0] * p.dilation[0], p.in[0]);
  int x = 0;
  for (; x + 16 <= width; x += 16) {
    float16 b = (float16)(-INFINITY);
    int16 r = (int16)(y0);
    for (int y = y0; y < y1; y += p.dilation[0]) {
      const float16 v = LOAD16(A, in, (long)y * width + x);
      const int16 wins = v > b || v != v;
      b = wins ? v : b;
      r = wins ? (int16)(y) : r;
    }
    vstore16(b, 0, best + x);
    vstore16(r, 0, row + x);
  }
  ROLLED for (; x < width; ++x) {
    best[x] = -INFINITY;
    row[x] = y0;
    for (int y = y0; y < y1; y += p.dilation[0]) {
      const float v = LOAD(A, in, (long)y * width + x);
      if (v > best[x] || v != v) {
        best[x] = v;
        row[x] = y;
      }
    }
  }
}

#if STEP == 2
INLINE float16 get_float(const float *p) { return (float16)(vload16(0, p).even, vload16(1, p).even); }
INLINE int16 get_int(const int *p) { return (int16)(vload16(0, p).even, vload16(1, p).even); }
#else
INLINE float16 get_float(const float *p) { return vload16(0, p); }
INLINE int16 get_int(const int *p) { return vload16(0, p); }
#endif

ONE_ITEM __kernel void max_pool(__global void *out_base, ulong out_offset, __global void *index_base,
                                ulong index_offset, __global const void *in_base, ulong in_offset,
                                const PoolParams p) {
  __global STYPE(A) *out = AT(A, out_base, out_offset);
  __global long *indices = AT(i64, index_base, index_offset);
  __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset);
  const int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const int width = p.in[1], step = p.dilation[1], padding = p.padding[1];
  float best[WIDTH];
  int row[WIDTH];
  for (int i = 0; i < WIDTH; ++i) {
    best[i] = -INFINITY;
    row[i] = NOWHERE;
  }
  FOR_EACH(i, p.pieces, p.per_item) {
    const int y = i % p.out[0], top = y * p.stride[0] - p.padding[0];
    columns(p, in + i / p.out[0] * p.in[0] * width, top, best + padding, row + padding);
    const int16 first_row = (int16)(first_inside(top, p.dilation[0]));
    for (int x = 0; x < p.out[1]; x += 16) {
      const int16 left = (lanes + x) * STEP - padding;
      float16 b = (float16)(-INFINITY);
      int16 r = first_row;
      int16 c = left < 0 ? left + (-left + (step - 1)) / step * step : left;
      for (int k = 0; k < p.kernel_size[1]; ++k) {
        const float16 v = get_float(best + x * STEP + k * step);
        const int16 vr = get_int(row + x * STEP + k * step);
        const int16 wins = v > b || (v == b && vr < r) || (v != v && (b == b || vr >= r));
        b = wins ? v : b;
        r = wins ? vr : r;
        c = wins ? left + k * step : c;
      }
      const long16 at = convert_long16(r * width + c);
      const long to = i * p.out[1] + x;
      if (x + 16 <= p.out[1]) {
        STORE16(A, out, to, b);
        vstore16(at, 0, indices + to);
      } else {
        float b_lane[16];
        long at_lane[16];
        vstore16(b, 0, b_lane);
        vstore16(at, 0, at_lane);
        for (int k = 0; k < p.out[1] - x; ++k) {
          STORE(A, out, to + k, b_lane[k]);
          indices[to + k] = at_lane[k];
        }
      }
    }
  }
}
