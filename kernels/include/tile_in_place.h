// Tiles of products on CPU drivers (tile_sweep.h) whose A, of floats, is read where it lies. Included instead
// of tile_sweep.h.
#ifndef OCLTENSOR_TILE_IN_PLACE_H
#define OCLTENSOR_TILE_IN_PLACE_H
#include "tile_rows.h"

INLINE void multiply_in_place(float16 sum[TILE_ROWS][2], __global const float *a, long a_row, long a_col,
                              int rows, const SCRATCH float16 *panel, int length) {
  UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v) sum[i][v] = (float16)(0);
  __global const float *row[TILE_ROWS];
  UNROLL for (int i = 0; i < TILE_ROWS; ++i) row[i] = a + min(i, rows - 1) * a_row;
  for (int k = 0; k < length; ++k) {
    const float16 b0 = panel[2 * k], b1 = panel[2 * k + 1];
    const long at = k * a_col;
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) {
      const float16 x = (float16)(row[i][at]);
      sum[i][0] = fma(x, b0, sum[i][0]);
      sum[i][1] = fma(x, b1, sum[i][1]);
    }
  }
}
#define MULTIPLY_TILE(sum, a, p, m, first, rows, panel, count)                                        \
  multiply_in_place(sum, (a) + (m) * (p).a_row + (first) * (p).a_col, (p).a_row, (p).a_col, rows, panel, \
                    count)
#include "tile_sweep.h"
#endif
