// The work of one item of a matrix product for CPU drivers: `rows` rows and up to MAX_PANELS panels of 32
// columns of c. It packs its block of B itself (at most 256 KiB, Intel's limit for local memory) and sweeps
// tiles of 8 x 32 in registers. Sums of several blocks of steps meet in c. A step is one k, or what a kernel
// makes it. Before this, a kernel may define what it does otherwise:
//   ADD_PRODUCTS(x, b, sum)                                      the sums after a step
//   PACK_PANEL(panel, b, p, first, count, columns)               `count` steps of B from `first`
//   MULTIPLY_TILE(sum, a, p, m, first, rows, panel, count)       for A that is not packed as [m / 8][step][8]
#ifndef OCLTENSOR_TILE_SWEEP_H
#define OCLTENSOR_TILE_SWEEP_H
#include "tile_rows.h"

#define MAX_PANELS 8
#define PANEL_VECTORS (K_BLOCK * 2)  // of 64 bytes

#ifndef ADD_PRODUCTS
#define ADD_PRODUCTS(x, b, sum) fma(x, b, sum)
#endif
#ifndef PACK_PANEL
#define PACK_PANEL(panel, b, p, first, count, columns) \
  pack_b(panel, (b) + (first) * (p).b_row, (p).b_row, (p).b_col, count, columns)
#endif
#ifndef MULTIPLY_TILE
#define MULTIPLY_TILE(sum, a, p, m, first, rows, panel, count) \
  multiply_packed(sum, (a) + (m) * steps + (first) * TILE_ROWS, panel, count)
#endif

INLINE void multiply_packed(float16 sum[TILE_ROWS][2], __global const float *a, const SCRATCH float16 *panel,
                            int count) {
  UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v) sum[i][v] = (float16)(0);
  for (int k = 0; k < count; ++k) {
    const float16 b0 = panel[2 * k], b1 = panel[2 * k + 1];
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) {
      const float16 x = (float16)(a[k * TILE_ROWS + i]);
      sum[i][0] = ADD_PRODUCTS(x, b0, sum[i][0]);
      sum[i][1] = ADD_PRODUCTS(x, b1, sum[i][1]);
    }
  }
}

INLINE void sweep_tiles(__global STYPE(RESULT) *c, __global const float *a, __global const STYPE(B_TYPE) *b,
                        const Epilogue end, SCRATCH float16 *packed, const MatmulParams p, long steps,
                        long n0, long m0, int rows, int panels) {
  const long m1 = min((long)p.m, m0 + rows);
  const int block = block_length(steps);
  for (long first = 0; first < steps; first += block) {
    const int count = min((long)block, steps - first);
    const BlockEnd block_end = {end, first == 0, first + block >= steps};
    for (int i = 0; i < panels; ++i) {
      const long n = n0 + i * PANEL;
      if (n < p.n)
        PACK_PANEL(packed + i * PANEL_VECTORS, b + n * p.b_col, p, first, count, min((long)PANEL, p.n - n));
    }
    for (long m = m0; m < m1; m += TILE_ROWS)
      for (int i = 0; i < panels; ++i) {
        const long n = n0 + i * PANEL;
        if (n >= p.n) break;
        const int rows_here = min((long)TILE_ROWS, m1 - m);
        float16 sum[TILE_ROWS][2];
        MULTIPLY_TILE(sum, a, p, m, first, rows_here, packed + i * PANEL_VECTORS, count);
        store_tile(sum, c + m * p.c_row + n, p.c_row, m, n, rows_here, min((long)PANEL, p.n - n), block_end);
      }
  }
}

// An operand of an item's matrix of the batch, the end of its results, and its first column and row.
#define OF_BATCH(TYPE_, base, offset, stride) (AT_CONST(TYPE_, base, offset) + get_global_id(2) * (stride))
#define END_OF_BATCH \
  epilogue_of(add_s != 0, s_base, s_offset, SCALE_ARGUMENTS get_global_id(2), p)
#define FIRST_PLACE (long)get_global_id(0) * PANEL * panels, (long)get_global_id(1) * rows
#endif
