// Matrix product for CPU drivers, for products too small to pack A: as cpu_packed.cl, but A is read in place.
// Defines: TYPE and OUT, both f32.
#include "tile_rows.h"

INLINE void multiply_in_place(float16 sum[TILE_ROWS][2], __global const STYPE(TYPE) *a, long a_row,
                              long a_col, int rows, const SCRATCH float16 *panel, int length) {
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
#define A_TYPE STYPE(TYPE)
#define MULTIPLY_TILE(sum, a, p, m, first, rows, panel, count)                                        \
  multiply_in_place(sum, (a) + (m) * (p).a_row + (first) * (p).a_col, (p).a_row, (p).a_col, rows, panel, \
                    count)
#include "tile_sweep.h"

ONE_ITEM __kernel void matmul_in_place(__global void *c_base, ulong c_offset, __global const void *a_base,
                                       ulong a_offset, __global const void *b_base, ulong b_offset,
                                       __global const void *s_base, ulong s_offset, const MatmulParams p,
                                       const int rows, const int panels, const int add_s) {
  SCRATCH float16 packed[MAX_PANELS * PANEL_VECTORS];
  sweep_tiles(AT(OUT, c_base, c_offset) + get_global_id(2) * p.c_batch,
              OF_BATCH(TYPE, a_base, a_offset, p.a_batch), OF_BATCH(TYPE, b_base, b_offset, p.b_batch),
              OF_BATCH(TYPE, s_base, s_offset, p.s_batch), packed, p, p.k, FIRST_PLACE, rows, panels, add_s);
}
