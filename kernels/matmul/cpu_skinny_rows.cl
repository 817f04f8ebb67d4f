// Products of at most ROWS (1 or 4) rows with a B that is contiguous along n, for CPU drivers: a work-item
// takes 256 columns and reads four rows of B at a time. Defines: A_TYPE, B_TYPE, RESULT, ROWS, those of
// epilogue.h.
#include "tile_rows.h"

#define COLUMNS 256

ONE_ITEM __kernel void matmul_skinny_rows(__global void *c_base, ulong c_offset, __global const void *a_base,
                                          ulong a_offset, __global const void *b_base, ulong b_offset,
                                          __global const void *s_base, ulong s_offset,
                                          __global const void *scales_base, ulong scales_offset,
                                          const MatmulParams p, const int add_s) {
  const long n0 = (long)get_global_id(0) * COLUMNS, z = get_global_id(2);
  const int columns = min((long)COLUMNS, p.n - n0), full = columns / 16, rest = columns - full * 16;
  __global const STYPE(A_TYPE) *a = AT_CONST(A_TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(B_TYPE) *b = AT_CONST(B_TYPE, b_base, b_offset) + z * p.b_batch + n0;
  __global STYPE(RESULT) *c = AT(RESULT, c_base, c_offset) + z * p.c_batch + n0;
  const Epilogue end = epilogue_of(add_s != 0, s_base, s_offset, SCALE_ARGUMENTS z, p);
  SCRATCH float16 sum[ROWS][COLUMNS / 16];
  for (int m = 0; m < ROWS; ++m)
    for (int j = 0; j < COLUMNS / 16; ++j) sum[m][j] = (float16)(0);
  long k = 0;
  for (; k + 4 <= p.k; k += 4) {
    float x[ROWS][4];
    UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int u = 0; u < 4; ++u)
      x[m][u] = LOAD(A_TYPE, a, min((long)m, p.m - 1) * p.a_row + (k + u) * p.a_col);
    for (int j = 0; j < full; ++j) {
      float16 v[4];
      UNROLL for (int u = 0; u < 4; ++u) v[u] = LOAD_FLOATS(B_TYPE, b, (k + u) * p.b_row + j * 16);
      UNROLL for (int m = 0; m < ROWS; ++m) {
        float16 t = sum[m][j];
        UNROLL for (int u = 0; u < 4; ++u) t = fma(v[u], (float16)(x[m][u]), t);
        sum[m][j] = t;
      }
    }
    if (rest > 0)
      for (int u = 0; u < 4; ++u) {
        const float16 v = load_part(b + (k + u) * p.b_row + full * 16, rest);
        UNROLL for (int m = 0; m < ROWS; ++m) sum[m][full] = fma(v, (float16)(x[m][u]), sum[m][full]);
      }
  }
  for (; k < p.k; ++k)
    for (int j = 0; j * 16 < columns; ++j) {
      const float16 v = load_part(b + k * p.b_row + j * 16, min(16, columns - j * 16));
      for (int m = 0; m < ROWS; ++m)
        sum[m][j] =
            fma(v, (float16)(LOAD(A_TYPE, a, min((long)m, p.m - 1) * p.a_row + k * p.a_col)), sum[m][j]);
    }
  for (int m = 0; m < min((long)ROWS, (long)p.m); ++m)
    for (int j = 0; j * 16 < columns; ++j) {
      const int n = min(16, columns - j * 16);
      store_c(ended_row(sum[m][j], m, n0 + j * 16, n, end), c + m * p.c_row + j * 16, n);
    }
}
