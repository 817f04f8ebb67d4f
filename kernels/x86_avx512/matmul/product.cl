// Product of bf16 matrices by AVX-512's dot products of pairs, A packed by product_pack.cl. As
// matmul/cpu_packed.cl: a work-item computes `rows` rows and up to 8 panels of 32 columns, and packs its
// block of B itself. Defines: TYPE (b, s; bf16), OUT (c; float where k takes several blocks).
#define MAX_PANELS 8
#include "bf16_pairs.h"
#include "tile_rows.h"

// Pairs [first, first + count) of a block of B of k rows as a panel [count][32]. Columns past the last are
// copies of it; their results are never stored.
INLINE void pack_columns(__local float16 *panel, __global const ushort *b, long row, long col, long first,
                         int count, long k, int columns) {
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

INLINE void multiply_pairs(float16 sum[TILE_ROWS][2], __global const float *a, const __local float16 *panel,
                           int count) {
  UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v) sum[i][v] = (float16)(0);
  for (int k = 0; k < count; ++k) {
    const float16 b0 = panel[2 * k], b1 = panel[2 * k + 1];
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) {
      const float16 x = (float16)(a[k * TILE_ROWS + i]);
      sum[i][0] = add_pair_products(sum[i][0], x, b0);
      sum[i][1] = add_pair_products(sum[i][1], x, b1);
    }
  }
}

ONE_ITEM __kernel void product(__global void *c_base, ulong c_offset, __global const void *a_base,
                               ulong a_offset, __global const void *b_base, ulong b_offset,
                               __global const void *s_base, ulong s_offset, const MatmulParams p,
                               const long a_batch, const int rows, const int panels, const int add_s) {
  const long n0 = (long)get_global_id(0) * PANEL * panels, m0 = (long)get_global_id(1) * rows,
             z = get_global_id(2);
  const long m1 = min((long)p.m, m0 + rows);
  const int pairs = pair_count(p.k), block = pair_block(pairs);
  __global const float *a = AT_CONST(f32, a_base, a_offset) + z * a_batch;
  __global const ushort *b = AT_CONST(bf16, b_base, b_offset) + z * p.b_batch;
  __global const STYPE(TYPE) *s = AT_CONST(TYPE, s_base, s_offset) + z * p.s_batch;
  __global STYPE(OUT) *c = AT(OUT, c_base, c_offset) + z * p.c_batch;
  __local float16 packed[MAX_PANELS][PAIR_BLOCK * 2];
  for (int first = 0; first < pairs; first += block) {
    const int count = min(block, pairs - first);
    const Finish f = {as_float((uint)p.alpha), as_float((uint)p.beta), first == 0, add_s != 0};
    for (int i = 0; i < panels; ++i) {
      const long n = n0 + i * PANEL;
      if (n < p.n)
        pack_columns(packed[i], b + n * p.b_col, p.b_row, p.b_col, first, count, p.k,
                     min((long)PANEL, p.n - n));
    }
    for (long m = m0; m < m1; m += TILE_ROWS)
      for (int i = 0; i < panels; ++i) {
        const long n = n0 + i * PANEL;
        if (n >= p.n) break;
        float16 sum[TILE_ROWS][2];
        multiply_pairs(sum, a + m * pairs + (long)first * TILE_ROWS, packed[i], count);
        store_tile(sum, c + m * p.c_row + n, p.c_row, s + m * p.s_row + n * p.s_col, p.s_row, p.s_col,
                   min((long)TILE_ROWS, m1 - m), min((long)PANEL, p.n - n), f);
      }
  }
}
