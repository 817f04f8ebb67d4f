// Attention on CPU drivers: softmax(scale * query key^T + mask) value, without a matrix of scores. A
// work-item takes p.rows queries of one head. For each block of keys it takes 8 queries at a time: it
// computes their scores (in local memory) and the softmax so far, and updates the result, which is kept in
// memory as float. After Dao and others, arXiv 2205.14135.
// Defines: MASK (M its type), DROPOUT, SUMS (1: stores the rows' log-sum-exp, too).
#include "flash.h"

#define KEYS 512              // keys of a block; their rows stay in the second-level cache
#define PITCH (KEYS + 16)
#define MOST_ROWS 64

// Turns scores [8][0 .. n) into weights relative to the largest score so far. Returns the factors for the
// results so far. A NaN needs no special case: it makes the sum NaN.
INLINE float8 soften(SCRATCH float *s, int n, SCRATCH float *tops, SCRATCH float *totals) {
  float16 r[TILE];
  ROLLED for (int i = 0; i < TILE; ++i) {
    const SCRATCH float *row = s + i * PITCH;
    float16 a = (float16)(-INFINITY), b = a;
    for (int j = 0; j < n; j += 32) {
      const float16 x = vload16(0, row + j), y = vload16(1, row + j);
      a = LARGER(x, a);
      b = LARGER(y, b);
    }
    r[i] = LARGER(b, a);
  }
  const float8 before = vload8(0, tops), now = largest_of_8(r), top = LARGER(now, before);
  const float8 shift = (top == (float8)(-INFINITY)) ? (float8)(0) : top;
  float shifts[TILE];
  vstore8(shift, 0, shifts);
  ROLLED for (int i = 0; i < TILE; ++i) {
    SCRATCH float *row = s + i * PITCH;
    const float16 by = (float16)(shifts[i]);
    float16 a = (float16)(0), b = a;
    for (int j = 0; j < n; j += 32) {
      const float16 x = exp_16(vload16(0, row + j) - by), y = exp_16(vload16(1, row + j) - by);
      vstore16(x, 0, row + j);
      vstore16(y, 1, row + j);
      a += x;
      b += y;
    }
    r[i] = a + b;
  }
  const float8 factor = exp_16((float16)(before - shift, (float8)(0))).lo;
  vstore8(fma(vload8(0, totals), factor, sums_of_8(r)), 0, totals);
  vstore8(top, 0, tops);
  return factor;
}

ONE_ITEM __kernel void flash_forward(__global void *out_base, ulong out_offset, __global void *sums_base,
                                     ulong sums_offset, __global const void *query_base, ulong query_offset,
                                     __global const void *key_panels_base, ulong key_panels_offset,
                                     __global const void *value_base, ulong value_offset,
                                     __global const void *mask_base, ulong mask_offset, const FlashParams p) {
  const long keys = p.scores.keys, queries = p.scores.queries;
  const long z = get_global_id(1), batch = z / p.heads, head = z % p.heads, key_head = head / p.groups;
  const long q0 = get_global_id(0) * p.rows, q1 = min(queries, q0 + p.rows);
  __global const float *query = AT_CONST(f32, query_base, query_offset) + place_in(p.query, batch, head, 0);
  __global const float *value =
      AT_CONST(f32, value_base, value_offset) + place_in(p.value, batch, key_head, 0);
  __global const float *panels = AT_CONST(f32, key_panels_base, key_panels_offset) +
                                 (batch * (p.heads / p.groups) + key_head) * padded(keys) * p.depth;
  __global float *out = AT(f32, out_base, out_offset) + place_in(p.out, batch, head, 0);
  SCRATCH float s[TILE * PITCH], tops[MOST_ROWS], totals[MOST_ROWS];
  const long last = p.scores.causal ? min(keys, q1) : keys;
  for (long j0 = 0; j0 < last; j0 += KEYS) {
    for (long q = q0; q < q1; q += TILE) {
      const int count = min((long)TILE, q1 - q);
      const long end = p.scores.causal ? min(keys, q + count) : keys;  // of these queries' keys
      const int n = min((long)KEYS, end - j0);
      if (n <= 0) continue;
      __global const float *rows[TILE];
      UNROLL for (int i = 0; i < TILE; ++i) rows[i] = query + (q + min(i, count - 1)) * p.query.row;
      multiply_by_panels(s, PITCH, rows, (__global const float16 *)(panels + j0 * p.depth), p.depth, n,
                         as_float((uint)p.scale));
      SCRATCH float *top = tops + (q - q0), *total = totals + (q - q0);
      const long place = z * queries + q;  // the first row's place among all queries
#if MASK
      __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p.scores, place);
#endif
      for (int i = 0; i < TILE; ++i) {
        const int sees = p.scores.causal ? clamp(q + i + 1 - j0, 0L, (long)n) : n;
#if MASK
        if (i < count)
          mask_scores(s + i * PITCH, mask + i * p.scores.mask_row, p.scores.mask_column, j0, sees);
#endif
        if (sees < padded(n)) fill_rest(s + i * PITCH, sees, padded(n), -INFINITY);
      }
      if (j0 == 0) {
        vstore8((float8)(-INFINITY), 0, top);
        vstore8((float8)(0), 0, total);
      }
      float factors[TILE];
      vstore8(soften(s, padded(n), top, total), 0, factors);
#if DROPOUT
      for (int i = 0; i < count; ++i)
        for (int j = 0; j < n; j += DRAWN) {
          float kept_ones[DRAWN];
          kept_factors(p.scores, place + i, j0 + j, kept_ones);
          SCRATCH float *row = s + i * PITCH + j;
          for (int v = 0; v < DRAWN / 16; ++v) vstore16(vload16(v, row) * vload16(v, kept_ones), v, row);
        }
#endif
      const bool done = j0 + KEYS >= end;
      float scales[TILE];
      if (done) {
        const float8 sum = vload8(0, total);
        vstore8((sum == (float8)(0)) ? (float8)(0) : (float8)(1) / sum, 0, scales);
      }
      for (long c = 0; c < p.width; c += PANEL) {
        __global float *target = out + q * p.out.row + c;
        Tile sum;
        FOR_TILE sum[i][v] = (float16)(0);
        if (j0 > 0) {
          FOR_TILE sum[i][v] = vload16(v, target + min(i, count - 1) * p.out.row) * factors[i];
        }
        add_rows(sum, s, PITCH, 1, value + j0 * p.value.row + c, p.value.row, n);
        if (done) {
          FOR_TILE sum[i][v] *= scales[i];
        }
        FOR_TILE if (i < count) vstore16(sum[i][v], v, target + i * p.out.row);
      }
#if SUMS
      if (done)
        ROLLED for (int i = 0; i < count; ++i)
          AT(f32, sums_base, sums_offset)[place + i] =
              total[i] == 0 ? -INFINITY : log(total[i]) + (top[i] == -INFINITY ? 0 : top[i]);
#endif
    }
  }
}
