// Matrix product for CPU drivers, for products too small to pack A: as cpu_packed.cl, but A is read in place.
// Defines: TYPE and OUT, both f32.
#define MAX_PANELS 8
#include "tile_rows.h"

INLINE void multiply_in_place(float16 sum[TILE_ROWS][2], __global const STYPE(TYPE) *a, long a_row,
                              long a_col, int rows, const __local float16 *panel, int length) {
  UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v) sum[i][v] = (float16)(0);
  __global const STYPE(TYPE) *row[TILE_ROWS];
  UNROLL for (int i = 0; i < TILE_ROWS; ++i) row[i] = a + min(i, rows - 1) * a_row;
  for (int k = 0; k < length; ++k) {
    const float16 b0 = panel[2 * k], b1 = panel[2 * k + 1];
    const long at = k * a_col;
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) {
      const float16 x = (float16)(LOAD(TYPE, row[i], at));
      sum[i][0] = fma(x, b0, sum[i][0]);
      sum[i][1] = fma(x, b1, sum[i][1]);
    }
  }
}

ONE_ITEM __kernel void matmul_in_place(__global void *c_base, ulong c_offset, __global const void *a_base,
                                       ulong a_offset, __global const void *b_base, ulong b_offset,
                                       __global const void *s_base, ulong s_offset, const MatmulParams p,
                                       const int rows, const int panels, const int add_s) {
  const long n0 = (long)get_global_id(0) * PANEL * panels, m0 = (long)get_global_id(1) * rows,
             z = get_global_id(2);
  const long m1 = min((long)p.m, m0 + rows);
  __global const STYPE(TYPE) *a = AT_CONST(TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(TYPE) *b = AT_CONST(TYPE, b_base, b_offset) + z * p.b_batch;
  __global const STYPE(TYPE) *s = AT_CONST(TYPE, s_base, s_offset) + z * p.s_batch;
  __global STYPE(OUT) *c = AT(OUT, c_base, c_offset) + z * p.c_batch;
  __local float16 packed[MAX_PANELS][K_BLOCK * 2];
  const int block = block_length(p.k);
  for (long k0 = 0; k0 < p.k; k0 += block) {
    const int length = min((long)block, p.k - k0);
    const Finish f = {as_float((uint)p.alpha), as_float((uint)p.beta), k0 == 0, add_s != 0};
    for (int i = 0; i < panels; ++i) {
      const long n = n0 + i * PANEL;
      if (n < p.n)
        pack_b(packed[i], b + k0 * p.b_row + n * p.b_col, p.b_row, p.b_col, length,
               min((long)PANEL, p.n - n));
    }
    for (long m = m0; m < m1; m += TILE_ROWS)
      for (int i = 0; i < panels; ++i) {
        const long n = n0 + i * PANEL;
        if (n >= p.n) break;
        const int rows_here = min((long)TILE_ROWS, m1 - m);
        float16 sum[TILE_ROWS][2];
        multiply_in_place(sum, a + m * p.a_row + k0 * p.a_col, p.a_row, p.a_col, rows_here, packed[i],
                          length);
        store_tile(sum, c + m * p.c_row + n, p.c_row, s + m * p.s_row + n * p.s_col, p.s_row, p.s_col,
                   rows_here, min((long)PANEL, p.n - n), f);
      }
  }
}
