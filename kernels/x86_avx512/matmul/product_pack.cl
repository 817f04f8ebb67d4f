// A of a bf16 product as panels [m / 8][pair][8] of pairs along k (bf16_pairs.h) for product.cl; rows past
// the last repeat it. A work-item packs one panel along 512 pairs.
#include "bf16_pairs.h"
#include "matmul_params.h"

#define TILE_ROWS 8
#define CHUNK 512

ONE_ITEM __kernel void product_pack(__global void *panel_base, ulong panel_offset,
                                    __global const void *a_base, ulong a_offset, const MatmulParams p,
                                    const long panel_batch) {
  const int pairs = pair_count(p.k);
  const long m = get_global_id(0) * TILE_ROWS, end = min((long)pairs, (long)(get_global_id(1) + 1) * CHUNK);
  const int rows = min((long)TILE_ROWS, p.m - m);
  __global const ushort *a = AT_CONST(bf16, a_base, a_offset) + get_global_id(2) * p.a_batch + m * p.a_row;
  __global uint *panel = AT(u32, panel_base, panel_offset) + get_global_id(2) * panel_batch + m * pairs;
  long i = get_global_id(1) * CHUNK;
  if (p.a_row == 1 && rows == TILE_ROWS)
    for (; i < end && 2 * i + 1 < p.k; ++i)
      vstore8(join8(vload8(0, a + 2 * i * p.a_col), vload8(0, a + (2 * i + 1) * p.a_col)), i, panel);
  if (p.a_col == 1)
    for (; i + 16 <= end && 2 * i + 32 <= p.k; i += 16) {
      float16 r[TILE_ROWS];
      UNROLL for (int j = 0; j < TILE_ROWS; ++j) r[j] = load_pairs16(a + min(j, rows - 1) * p.a_row + 2 * i);
      transpose8(r);
      UNROLL for (int j = 0; j < TILE_ROWS; ++j) vstore16(as_uint16(r[j]), j, panel + i * TILE_ROWS);
    }
  ROLLED for (; i < end; ++i)
    ROLLED for (int j = 0; j < TILE_ROWS; ++j)
      panel[i * TILE_ROWS + j] = load_pair(a + min(j, rows - 1) * p.a_row, p.a_col, i, p.k);
}
