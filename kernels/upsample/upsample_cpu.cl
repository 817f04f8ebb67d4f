// Upsampling and its gradient for CPU drivers, rows of at most WIDTH elements: each work-item computes the
// columns' sources once. Forward, it keeps the last two rows of the source, expanded to the target's columns
// (LINEAR); backward, it adds up the rows that read a source row before it gathers their columns.
#include "types.h"
#include "range.h"
#include "upsample_source.h"

#define WIDTH 1024

#define FOR_LARGE_COLUMNS(x) for (int x = 0; x < p.out[1]; ++x)
#define COLUMNS_OF_SOURCE                  \
  int low[WIDTH], high[WIDTH];             \
  T weight[WIDTH];                         \
  FOR_LARGE_COLUMNS(x) {                   \
    const Source s = source(p, 1, x);      \
    low[x] = s.low;                        \
    high[x] = s.high;                      \
    weight[x] = s.weight;                  \
  }

#if FLOATING
typedef CVEC(A) T16;
#endif

// out = above * (1 - weight) + below * weight
INLINE void blend(__global STYPE(A) *out, const T *above, const T *below, T weight, int n) {
  int x = 0;
#if FLOATING
  for (; x + 16 <= n; x += 16)
    STORE16(A, out, x, vload16(0, above + x) * (T16)(1 - weight) + vload16(0, below + x) * (T16)(weight));
#endif
  for (; x < n; ++x) STORE(A, out, x, RESULT(above[x] * (1 - weight) + below[x] * weight));
}

// to += from * weight
INLINE void add_row(T *to, __global const STYPE(A) *from, T weight, int n) {
  int x = 0;
#if FLOATING
  for (; x + 16 <= n; x += 16) vstore16(vload16(0, to + x) + LOAD16(A, from, x) * (T16)(weight), 0, to + x);
#endif
  for (; x < n; ++x) to[x] += (T)LOAD(A, from, x) * weight;
}

GROUP __kernel void forward(__global void *target_base, ulong target_offset, __global const void *source_base,
                            ulong source_offset, const UpsampleParams p) {
  COLUMNS_OF_SOURCE
#if LINEAR
  T kept[2][WIDTH];
  long row_of[2] = {-1, -1};
#endif
  FOR_EACH(i, p.pieces, p.per_item) {
    const Source y = source(p, 0, i % p.out[0]);
    const long plane = i / p.out[0] * p.in[0];
    __global STYPE(A) *out = AT(A, target_base, target_offset) + i * p.out[1];
    __global const STYPE(A) *in = AT_CONST(A, source_base, source_offset);
#if LINEAR
    const long rows[2] = {plane + y.low, plane + y.high};
    int at[2];
    UNROLL for (int k = 0; k < 2; ++k) {
      at[k] = rows[k] == row_of[0] ? 0 : rows[k] == row_of[1] ? 1 : k == 0 ? row_of[0] == rows[1] : 1 - at[0];
      if (rows[k] == row_of[at[k]]) continue;
      row_of[at[k]] = rows[k];
      T *to = kept[at[k]];
      __global const STYPE(A) *from = in + rows[k] * p.in[1];
      FOR_LARGE_COLUMNS(x)
        to[x] = (T)LOAD(A, from, low[x]) * (1 - weight[x]) + (T)LOAD(A, from, high[x]) * weight[x];
    }
    blend(out, kept[at[0]], kept[at[1]], y.weight, p.out[1]);
#else
    __global const STYPE(A) *from = in + (plane + y.low) * p.in[1];
    FOR_LARGE_COLUMNS(x) STORE(A, out, x, LOAD(A, from, low[x]));
#endif
  }
}

GROUP __kernel void backward(__global void *target_base, ulong target_offset,
                             __global const void *source_base, ulong source_offset, const UpsampleParams p) {
  COLUMNS_OF_SOURCE
  T sums[WIDTH], gathered[WIDTH];
  FOR_EACH(i, p.pieces, p.per_item) {
    const int y = i % p.in[0], y0 = first_reader(p, 0, y), y1 = end_reader(p, 0, y);
    __global STYPE(A) *in = AT(A, target_base, target_offset) + i * p.in[1];
    __global const STYPE(A) *plane =
        AT_CONST(A, source_base, source_offset) + i / p.in[0] * p.out[0] * p.out[1];
    FOR_LARGE_COLUMNS(x) sums[x] = 0;
    for (int oy = y0; oy < y1; ++oy)
      add_row(sums, plane + (long)oy * p.out[1], share(source(p, 0, oy), y), p.out[1]);
    for (int x = 0; x < p.in[1]; ++x) gathered[x] = 0;
    FOR_LARGE_COLUMNS(x) {
#if LINEAR
      gathered[low[x]] += sums[x] * (1 - weight[x]);
      gathered[high[x]] += sums[x] * weight[x];
#else
      gathered[low[x]] += sums[x];
#endif
    }
    for (int x = 0; x < p.in[1]; ++x) STORE(A, in, x, RESULT(gathered[x]));
  }
}
