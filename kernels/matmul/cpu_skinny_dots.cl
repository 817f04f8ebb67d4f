// Products of at most ROWS (1 or 4) rows with a B that is contiguous along k (a weight N x K), for CPU
// drivers: dot products along k, WIDTH columns at a time; a work-item takes `columns` columns. Defines:
// A_TYPE, B_TYPE, RESULT, ROWS, those of epilogue.h.
#include "vector_lanes.h"
#include "tile_rows.h"

#define WIDTH (ROWS == 1 ? 8 : 4)

ONE_ITEM __kernel void matmul_skinny_dots(__global void *c_base, ulong c_offset, __global const void *a_base,
                                          ulong a_offset, __global const void *b_base, ulong b_offset,
                                          __global const void *s_base, ulong s_offset,
                                          __global const void *scales_base, ulong scales_offset,
                                          const MatmulParams p, const int add_s, const long columns) {
  const long n0 = get_global_id(0) * columns, n1 = min((long)p.n, n0 + columns), z = get_global_id(2);
  __global const STYPE(A_TYPE) *a = AT_CONST(A_TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(B_TYPE) *b = AT_CONST(B_TYPE, b_base, b_offset) + z * p.b_batch;
  const Epilogue end = epilogue_of(add_s != 0, s_base, s_offset, SCALE_ARGUMENTS z, p);
  __global STYPE(RESULT) *c = AT(RESULT, c_base, c_offset) + z * p.c_batch;
  for (long n = n0; n < n1; n += WIDTH) {
    float16 sum[ROWS][WIDTH];
    UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int r = 0; r < WIDTH; ++r) sum[m][r] = (float16)(0);
    __global const STYPE(B_TYPE) *w[WIDTH];
    UNROLL for (int r = 0; r < WIDTH; ++r) w[r] = b + min(n + r, p.n - 1) * p.b_col;
    long k = 0;
    for (; k + 16 <= p.k; k += 16) {
      float16 x[ROWS];
      UNROLL for (int m = 0; m < ROWS; ++m)
        x[m] = LOAD_FLOATS(A_TYPE, a, min((long)m, p.m - 1) * p.a_row + k);
      UNROLL for (int r = 0; r < WIDTH; ++r) {
        const float16 v = LOAD_FLOATS(B_TYPE, w[r], k);
        UNROLL for (int m = 0; m < ROWS; ++m) sum[m][r] = fma(v, x[m], sum[m][r]);
      }
    }
    float total[ROWS * WIDTH];
    UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int r = 0; r < WIDTH; ++r)
      total[m * WIDTH + r] = sum_of_lanes(sum[m][r]);
    for (int m = 0; m < min((long)ROWS, (long)p.m); ++m)
      for (int r = 0; r < min((long)WIDTH, n1 - n); ++r) {
        float t = total[m * WIDTH + r];
        for (long i = k; i < p.k; ++i)
          t = fma((float)LOAD(A_TYPE, a, m * p.a_row + i), (float)LOAD(B_TYPE, b, (n + r) * p.b_col + i), t);
        STORE(RESULT, c, m * p.c_row + n + r, ended(t, m, n + r, end));
      }
  }
}
