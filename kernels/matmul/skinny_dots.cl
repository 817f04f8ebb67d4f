// Products of a few rows with a B that is contiguous along k (a weight N x K), for GPUs: LANES work-items
// share COLS columns, interleaved along k, and combine their sums in local memory in a fixed order.
// Defines: as skinny.h (VEC: along k, of A and B); COLS; LANES (8 to 256, a power of two).
#include "skinny.h"

#define ITEMS 256
#define TEAMS (ITEMS / LANES)
#define SUMS (ROWS * COLS)
#define COMBINED_AT_ONCE (SUMS < 8 ? SUMS : 8)  // sums combined at once
#if VEC == 1
#define ALONG(stride) (stride)
#else
#define ALONG(stride) 1
#endif

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void matmul_dots(SKINNY_ARGUMENTS, const MatmulParams p) {
  __local acc_t shared[COMBINED_AT_ONCE][ITEMS];
  const uint id = get_local_id(0), lane = id % LANES, team = id / LANES;
  const Tile tile = tile_of_group(TEAMS * COLS, pieces, length, p);
  __global const STYPE(A_TYPE) *a = AT_CONST(A_TYPE, a_base, a_offset) + tile.z * p.a_batch;
  __global const STYPE(B_TYPE) *b = AT_CONST(B_TYPE, b_base, b_offset) + tile.z * p.b_batch;
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS tile.z, p);
  const long n0 = tile.n + team * COLS;
  const long last = max(min(p.n - n0, (long)COLS), 1L) - 1;
  int row[ROWS], column[COLS];  // offsets from the first ones: 64 bits would take twice the registers
  UNROLL for (int i = 0; i < ROWS; ++i) row[i] = (int)(min((long)i, p.m - 1 - tile.m) * p.a_row);
  UNROLL for (int j = 0; j < COLS; ++j) column[j] = (int)(min((long)j, last) * p.b_col);
  a += tile.m * p.a_row + tile.k * p.a_col;
  b += min(n0, p.n - 1) * p.b_col + tile.k * p.b_row;
  const uint terms = (uint)(tile.end - tile.k);
  acc_t sum[SUMS];
  UNROLL for (int i = 0; i < SUMS; ++i) sum[i] = 0;
  for (uint k = lane * VEC; k < terms; k += LANES * VEC) {
    RAW_VECTOR(B_TYPE) raw[COLS];
    acc_t v[COLS][VEC];
    UNROLL for (int j = 0; j < COLS; ++j) raw[j] = LOAD_RAW(B_TYPE, b + k * ALONG(p.b_row), column[j]);
    UNROLL for (int j = 0; j < COLS; ++j) UNPACK_RAW(B_TYPE, raw[j], v[j]);
    UNROLL for (int i = 0; i < ROWS; ++i) {
      acc_t u[VEC];
      UNPACK_RAW(A_TYPE, LOAD_RAW(A_TYPE, a + k * ALONG(p.a_col), row[i]), u);
      UNROLL for (int j = 0; j < COLS; ++j) UNROLL for (int l = 0; l < VEC; ++l)
        sum[i * COLS + j] = MULTIPLY_ADD(u[l], v[j][l], sum[i * COLS + j]);
    }
  }
  UNROLL for (int first = 0; first < SUMS; first += COMBINED_AT_ONCE) {
    UNROLL for (int i = 0; i < COMBINED_AT_ONCE; ++i) shared[i][id] = sum[first + i];
    for (uint far = LANES / 2; far > 0; far /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane < far) UNROLL for (int i = 0; i < COMBINED_AT_ONCE; ++i) shared[i][id] += shared[i][id + far];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < COMBINED_AT_ONCE * TEAMS) {
      const uint i = id % COMBINED_AT_ONCE, from = id / COMBINED_AT_ONCE;
      const long m = tile.m + (first + i) / COLS, n = tile.n + from * COLS + (first + i) % COLS;
      if (m < p.m && n < p.n)
        store_sum(c_base, c_offset, shared[i][from * LANES], end, tile, m, n, batch, p);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
