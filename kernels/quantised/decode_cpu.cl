// Products of a few rows of x (ROWS: 1, 2, 4, 8) with a quantised weight, for CPU drivers: a work-item takes
// `per_item` rows of the weight, WIDTH at a time, along k by units. x is made floats once, in the order of a
// unit's vectors. Defines: those of quantised_x.h; HAS_BIAS.
#include "quantised_x.h"

#define WIDTH (ROWS == 1 ? 1 : ROWS <= 4 ? 4 : 2)
#define BLOCK_UNITS (16384 / ROWS / UNIT)  // units along k whose x is kept
#define BLOCK_ROWS 64                      // rows of the weight whose sums are kept meanwhile

// x beside units [first, first + count), and the sums of its spans.
INLINE void prepare_x(SCRATCH float16 *of_x, SCRATCH float16 *x_sums, __global const STYPE(TYPE) *x,
                      long first, int count, const QuantisedParams p) {
  for (int u = 0; u < count; ++u)
    for (int m = 0; m < ROWS; ++m) {
      const long k = (first + u) * UNIT;
      float16 v[VECTORS];
      load_unit(x + min((long)m, p.m - 1) * p.x_row, k, (int)min((long)UNIT, p.k - k), v);
      UNROLL for (int i = 0; i < VECTORS; ++i) of_x[(u * ROWS + m) * VECTORS + i] = v[i];
#if OFFSETS
      float16 sums[SPANS];
      sum_spans(v, sums);
      UNROLL for (int i = 0; i < SPANS; ++i) x_sums[(u * ROWS + m) * SPANS + i] = sums[i];
#endif
    }
}

// Adds the products of a unit of WIDTH rows from n on; `count` of its elements exist.
INLINE void add_products(float16 sum[ROWS][WIDTH], const Weight w, long n, long k, int count,
                         SCRATCH const float16 *of_x, SCRATCH const float16 *x_sums,
                         const QuantisedParams p) {
  float16 x[ROWS][VECTORS], spans[ROWS][SPANS];
  UNROLL for (int m = 0; m < ROWS; ++m) {
    UNROLL for (int i = 0; i < VECTORS; ++i) x[m][i] = of_x[m * VECTORS + i];
#if OFFSETS
    UNROLL for (int i = 0; i < SPANS; ++i) spans[m][i] = x_sums[m * SPANS + i];
#endif
  }
  UNROLL for (int r = 0; r < WIDTH; ++r) {
    float16 v[VECTORS];
    Packed a;
    unit_numbers(w, min(n + r, p.n - 1), k, &a, v);
    if (count < UNIT) cut_unit(v, count);
    UNROLL for (int m = 0; m < ROWS; ++m)
      sum[m][r] = add_unit(sum[m][r], v, a.scale, a.offset, x[m], spans[m]);
  }
}

// Adds the products of `count` units from `first` on to the sums of rows n and the next ones.
INLINE void add_block(SCRATCH float16 *sums, const Weight w, long n, long first, int count,
                      SCRATCH const float16 *of_x, SCRATCH const float16 *x_sums, const QuantisedParams p) {
  float16 sum[ROWS][WIDTH];
  UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int r = 0; r < WIDTH; ++r)
    sum[m][r] = first == 0 ? (float16)(0) : sums[m * WIDTH + r];
  const int whole = (int)min((long)count, p.k / UNIT - first);
  int u = 0;
  for (; u < whole; ++u)
    add_products(sum, w, n, (first + u) * UNIT, UNIT, of_x + u * ROWS * VECTORS, x_sums + u * ROWS * SPANS,
                 p);
#if !WHOLE
  if (u < count)
    add_products(sum, w, n, (first + u) * UNIT, (int)(p.k % UNIT), of_x + u * ROWS * VECTORS,
                 x_sums + u * ROWS * SPANS, p);
#endif
  UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int r = 0; r < WIDTH; ++r)
    sums[m * WIDTH + r] = sum[m][r];
}

ONE_ITEM __kernel void decode(__global void *out_base, ulong out_offset, __global const void *x_base,
                              ulong x_offset, __global const void *weight_base, ulong weight_offset,
                              __global const void *scale_base, ulong scale_offset,
                              __global const void *zero_base, ulong zero_offset,
                              __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  SCRATCH float16 of_x[BLOCK_UNITS * ROWS * VECTORS], sums[BLOCK_ROWS * ROWS];
#if OFFSETS
  SCRATCH float16 x_sums[BLOCK_UNITS * ROWS * SPANS];
#else
  SCRATCH float16 x_sums[1];
#endif
  const Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset);
  const long n0 = get_global_id(0) * p.per_item, n1 = min((long)p.n, n0 + p.per_item);
  const long units = (p.k + UNIT - 1) / UNIT;
  for (long start = n0; start < n1; start += BLOCK_ROWS) {
    const long end = min(n1, start + BLOCK_ROWS);
    for (long first = 0; first < units; first += BLOCK_UNITS) {
      const int count = (int)min((long)BLOCK_UNITS, units - first);
      if (start == n0 || units > BLOCK_UNITS) prepare_x(of_x, x_sums, x, first, count, p);
      for (long n = start; n < end; n += WIDTH)
        add_block(sums + (n - start) * ROWS, w, n, first, count, of_x, x_sums, p);
    }
    ROLLED for (long n = start; n < end; ++n)
      ROLLED for (int m = 0; m < min((long)ROWS, (long)p.m); ++m) {
        const long i = n - start;
        float t = units == 0 ? 0 : horizontal_sum(sums[i / WIDTH * WIDTH * ROWS + m * WIDTH + i % WIDTH]);
        t = finished(t, w, n, x + m * p.x_row, bias_base, bias_offset, p);
        STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + n, t);
      }
  }
}
