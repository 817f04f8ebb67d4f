// Products of a few rows with a B that is contiguous along n, for GPUs: ACROSS work-items share a row of B,
// VEC columns each; the others take other rows. Their sums are combined in local memory in a fixed order.
// Defines: as skinny.h (VEC: columns of B); ACROSS (work-items along a row: 8 or 32).
#include "skinny.h"

#define ITEMS 256
#define DOWN (ITEMS / ACROSS)   // work-items along k
#define RUN 4                   // successive k of a work-item
#define CHUNK 128               // k of A that are in local memory at a time
#define COLUMNS (ACROSS * VEC)
#if ROWS * VEC < 32
#define RUNS UNROLL
#else
#define RUNS _Pragma("unroll 1")  // not unrolled, to leave the registers to the sums
#endif
#define MOST (4096 / DOWN / COLUMNS)          // rows whose sums take 16 KiB (32-bit ones) of local memory
#define COMBINED_AT_ONCE (ROWS <= MOST ? ROWS : MOST)  // rows combined at once

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void matmul_columns(SKINNY_ARGUMENTS, const MatmulParams p) {
  __local acc_t rows[ROWS][CHUNK] __attribute__((aligned(16)));
  __local acc_t shared[COMBINED_AT_ONCE][DOWN][COLUMNS] __attribute__((aligned(16)));
  const int id = get_local_id(0), across = id % ACROSS, down = id / ACROSS;
  const Tile tile = tile_of_group(COLUMNS, pieces, length, p);
  __global const STYPE(A_TYPE) *a = AT_CONST(A_TYPE, a_base, a_offset) + tile.z * p.a_batch;
  __global const STYPE(B_TYPE) *b = AT_CONST(B_TYPE, b_base, b_offset) + tile.z * p.b_batch +
                                    min(tile.n + across * VEC, p.n - VEC);
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS tile.z, p);
  acc_t sum[ROWS][VEC];
  UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int l = 0; l < VEC; ++l) sum[m][l] = 0;
  for (long first = tile.k; first < tile.end; first += CHUNK) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < ROWS * CHUNK; i += ITEMS) {
      const int m = i / CHUNK, k = i % CHUNK;
      rows[m][k] = first + k < tile.end
                       ? ACC(LOAD(A_TYPE, a, min(tile.m + m, p.m - 1) * p.a_row + (first + k) * p.a_col))
                       : (acc_t)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    RUNS for (int run = 0; run < CHUNK / (DOWN * RUN); ++run) {
      const int k = (run * DOWN + down) * RUN;
      RAW_VECTOR(B_TYPE) raw[RUN];
      UNROLL for (int t = 0; t < RUN; ++t)
        raw[t] = first + k + t < tile.end ? LOAD_RAW(B_TYPE, b, (first + k + t) * p.b_row)
                                          : (RAW_VECTOR(B_TYPE))(0);
      acc_t v[RUN][VEC];
      UNROLL for (int t = 0; t < RUN; ++t) UNPACK_RAW(B_TYPE, raw[t], v[t]);
      UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int t = 0; t < RUN; ++t) {
        const acc_t u = rows[m][k + t];
        UNROLL for (int l = 0; l < VEC; ++l) sum[m][l] = MULTIPLY_ADD(u, v[t][l], sum[m][l]);
      }
    }
  }
  UNROLL for (int row = 0; row < ROWS; row += COMBINED_AT_ONCE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int m = 0; m < COMBINED_AT_ONCE; ++m) UNROLL for (int l = 0; l < VEC; ++l)
      shared[m][down][across * VEC + l] = sum[row + m][l];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < COMBINED_AT_ONCE * COLUMNS; i += ITEMS) {
      const int from = i / COLUMNS, column = i % COLUMNS;
      const long m = tile.m + row + from, n = tile.n + column;
      if (m >= p.m || n >= p.n) continue;
      acc_t total = shared[from][0][column];
      for (int j = 1; j < DOWN; ++j) total += shared[from][j][column];
      store_sum(c_base, c_offset, total, end, tile, m, n, batch, p);
    }
  }
}
