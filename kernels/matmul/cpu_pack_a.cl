// A, converted to float, as panels [m / 8][k][8] for cpu_packed.cl; rows past the last repeat it. A work-item
// packs one panel along 512 elements of k. Defines: A_TYPE.
#include "matmul_params.h"
#include "transpose.h"
#include "types.h"

#define CHUNK 512
#define TILE_ROWS 8  // tile_rows.h

ONE_ITEM __kernel void pack_a(__global void *panel_base, ulong panel_offset, __global const void *a_base,
                              ulong a_offset, const MatmulParams p, const long panel_batch) {
  const long m = get_global_id(0) * TILE_ROWS, k1 = min((long)p.k, (long)(get_global_id(1) + 1) * CHUNK);
  const int rows = min((long)TILE_ROWS, p.m - m);
  __global const STYPE(A_TYPE) *a =
      AT_CONST(A_TYPE, a_base, a_offset) + get_global_id(2) * p.a_batch + m * p.a_row;
  __global float *panel = AT(f32, panel_base, panel_offset) + get_global_id(2) * panel_batch + m * p.k;
  long k = get_global_id(1) * CHUNK;
  if (p.a_row == 1 && rows == TILE_ROWS) {
    for (; k < k1; ++k)
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) panel[k * TILE_ROWS + i] = LOAD(A_TYPE, a, k * p.a_col + i);
    return;
  }
  if (p.a_col == 1)
    for (; k + 16 <= k1; k += 16) {
      float16 r[TILE_ROWS];
      UNROLL for (int i = 0; i < TILE_ROWS; ++i)
        r[i] = convert_float16(LOAD16(A_TYPE, a, min(i, rows - 1) * p.a_row + k));
      transpose8(r);
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) vstore16(r[i], i, panel + k * TILE_ROWS);
    }
  for (; k < k1; ++k)
    for (int i = 0; i < TILE_ROWS; ++i)
      panel[k * TILE_ROWS + i] = LOAD(A_TYPE, a, min(i, rows - 1) * p.a_row + k * p.a_col);
}
