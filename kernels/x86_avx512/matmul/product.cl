// Product of bf16 matrices by AVX-512's dot products of pairs, A packed by product_pack.cl; a step along k is
// a pair. Defines: B_TYPE (bf16), RESULT (of c; float where k takes several blocks), those of epilogue.h.
#include "bf16_pairs.h"
#include "tile_rows.h"

// Pairs [first, first + count) of columns of B, of k rows, as a panel [count][32]. Columns past the last are
// copies of it; their results are never stored.
INLINE void pack_pairs(SCRATCH float16 *panel, __global const ushort *b, long row, long col, long k,
                       long first, int count, int columns) {
  int i = 0;
  if (col == 1 && columns >= PANEL)
    for (; i < count && 2 * (first + i) + 1 < k; ++i) {
      __global const ushort *low = b + 2 * (first + i) * row;
      panel[2 * i] = join16(vload16(0, low), vload16(0, low + row));
      panel[2 * i + 1] = join16(vload16(1, low), vload16(1, low + row));
    }
  if (row == 1)
    for (; i + 16 <= count && 2 * (first + i) + 32 <= k; i += 16)
      ROLLED for (int v = 0; v < 2; ++v) {
        float16 r[16];
        UNROLL for (int j = 0; j < 16; ++j)
          r[j] = load_pairs16(b + min(16 * v + j, columns - 1) * col + 2 * (first + i));
        transpose16(r);
        UNROLL for (int j = 0; j < 16; ++j) panel[2 * (i + j) + v] = r[j];
      }
  ROLLED for (; i < count; ++i)
    ROLLED for (int v = 0; v < 2; ++v) {
      uint lane[16];
      ROLLED for (int j = 0; j < 16; ++j)
        lane[j] = load_pair(b + min(16 * v + j, columns - 1) * col, row, first + i, k);
      panel[2 * i + v] = as_float16(vload16(0, lane));
    }
}

#define PACK_PANEL(panel, b, p, first, count, columns) \
  pack_pairs(panel, b, (p).b_row, (p).b_col, (p).k, first, count, columns)
#define ADD_PRODUCTS(x, b, sum) add_pair_products(sum, x, b)
#include "tile_sweep.h"

ONE_ITEM __kernel void product(__global void *c_base, ulong c_offset, __global const void *a_base,
                               ulong a_offset, __global const void *b_base, ulong b_offset,
                               __global const void *s_base, ulong s_offset,
                               __global const void *scales_base, ulong scales_offset,
                               const MatmulParams p, const long a_batch, const int rows, const int panels,
                               const int add_s) {
  SCRATCH float16 packed[MAX_PANELS * PANEL_VECTORS];
  sweep_tiles(AT(RESULT, c_base, c_offset) + get_global_id(2) * p.c_batch,
              OF_BATCH(f32, a_base, a_offset, a_batch), OF_BATCH(B_TYPE, b_base, b_offset, p.b_batch),
              END_OF_BATCH, packed, p, pair_count(p.k), FIRST_PLACE, rows, panels);
}
