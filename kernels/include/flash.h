// Parts of attention without a score matrix, for CPU drivers: products of 8 rows with panels of 32 columns in
// registers, and the mask over rows of scores in local memory. Everything is inlined: PoCL 3.1 miscompiles
// calls that take arrays of float16. Needs MASK and DROPOUT; sums are float.
#ifndef OCLTENSOR_FLASH_H
#define OCLTENSOR_FLASH_H
#include "vector_lanes.h"
#include "types.h"
#define COMPUTE f32
typedef float T;
#include "exp.h"
#include "flash_params.h"
#include "attention.h"

#define TILE 8    // rows of a product
#define PANEL 32  // its columns: two vectors
typedef float16 Tile[TILE][2];
#define FOR_TILE UNROLL for (int i = 0; i < TILE; ++i) UNROLL for (int v = 0; v < 2; ++v)
#define LANE_NUMBERS (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)

INLINE long place_in(const FlashTensor t, long batch, long head, long row) {
  return batch * t.batch + head * t.head + row * t.row;
}
INLINE long padded(long n) { return (n + PANEL - 1) / PANEL * PANEL; }

// Combines the lanes of 8 vectors, all at once: lane i of the result is the combination of r[i]'s lanes.
#define COMBINE_8(name, COMBINE)                                                                        \
  INLINE float8 name(const float16 *r) {                                                                \
    float16 a[4], b[2];                                                                                 \
    UNROLL for (int i = 0; i < 4; ++i)                                                                  \
      a[i] = COMBINE(HALVES_LOW(float16, r[2 * i], r[2 * i + 1]),                                       \
                  HALVES_HIGH(float16, r[2 * i], r[2 * i + 1]));                                        \
    UNROLL for (int i = 0; i < 2; ++i)                                                                  \
      b[i] = COMBINE(QUARTERS_LOW(float16, a[2 * i], a[2 * i + 1]),                                     \
                  QUARTERS_HIGH(float16, a[2 * i], a[2 * i + 1]));                                      \
    const float16 c = COMBINE(PAIRS_LOW(float16, b[0], b[1]), PAIRS_HIGH(float16, b[0], b[1]));         \
    return COMBINE(c.even, c.odd);                                                                      \
  }
#define LARGER(x, y) (((x) > (y)) ? (x) : (y))
#define SUM(x, y) ((x) + (y))
COMBINE_8(largest_of_8, LARGER)
COMBINE_8(sums_of_8, SUM)

// scores[i][0 .. keys) = scale * rows[i] . columns of panels [keys / 32][depth][32]; `pitch` floats from
// score row to row.
INLINE void multiply_by_panels(SCRATCH float *scores, int pitch, __global const float *rows[TILE],
                               __global const float16 *panels, int depth, int keys, float scale) {
  for (int j = 0; j < keys; j += PANEL) {
    Tile sum;
    FOR_TILE sum[i][v] = (float16)(0);
    for (int k = 0; k < depth; ++k) {
      const float16 b0 = panels[2 * k], b1 = panels[2 * k + 1];
      UNROLL for (int i = 0; i < TILE; ++i) {
        const float16 x = (float16)(rows[i][k]);
        sum[i][0] = fma(x, b0, sum[i][0]);
        sum[i][1] = fma(x, b1, sum[i][1]);
      }
    }
    panels += 2 * depth;
    FOR_TILE vstore16(sum[i][v] * scale, 0, scores + i * pitch + j + 16 * v);
  }
}

// sum[i] += sum over n of weights[i * across + n * along] * rows[n], for 32 columns.
INLINE void add_rows(Tile sum, const SCRATCH float *weights, int across, int along,
                     __global const float *rows, long row, int n) {
  for (int j = 0; j < n; ++j) {
    const float16 b0 = vload16(0, rows), b1 = vload16(1, rows);
    rows += row;
    UNROLL for (int i = 0; i < TILE; ++i) {
      const float16 x = (float16)(weights[i * across + j * along]);
      sum[i][0] = fma(x, b0, sum[i][0]);
      sum[i][1] = fma(x, b1, sum[i][1]);
    }
  }
}

#if MASK
// Applies the mask to the scores of keys first .. first + n - 1; `mask` is that of the query's row.
INLINE void mask_scores(SCRATCH float *s, __global const STYPE(M) *mask, long column, long first, int n) {
  mask += first * column;
  int j = 0;
  if (column == 1)
    for (; j + 16 <= n; j += 16) {
#if MASK == 1
      const int16 kept_lanes = convert_int16(LOAD16(M, mask, j)) != (int16)(0);
      vstore16(kept_lanes ? vload16(0, s + j) : (float16)(-INFINITY), 0, s + j);
#else
      vstore16(vload16(0, s + j) + TO16(f32, LOAD16(M, mask, j)), 0, s + j);
#endif
    }
  ROLLED for (; j < n; ++j)
#if MASK == 1
    s[j] = LOAD(M, mask, j * column) ? s[j] : -INFINITY;
#else
    s[j] += (float)LOAD(M, mask, j * column);
#endif
}
#endif

// s[n .. end) = value; end is a multiple of 16.
INLINE void fill_rest(SCRATCH float *s, int n, int end, float value) {
  for (int j = n / 16 * 16; j < end; j += 16) {
    const int16 inside = (int16)(j) + LANE_NUMBERS < (int16)(n);
    vstore16(inside ? vload16(0, s + j) : (float16)(value), 0, s + j);
  }
}

#if DROPOUT
// Dropout's factors for DRAWN weights of a row, from key j (a multiple of 16) on.
#define DRAWN 128
INLINE void kept_factors(const AttentionParams p, long row, long j, float *factors) {
  const ulong16 c = counters_from(row_counter(p, row) + counters_before(j));
  uint counters[16];
  vstore16(kept_of_counters(p, convert_uint16(c), convert_uint16(c >> 32)), 0, counters);
  // Of 16 weights, those of the first counter are numbers 0 to 3 and 8 to 11.
  const uint16 weights = (uint16)(1, 1 << 4, 1 << 8, 1 << 12, 1, 1 << 4, 1 << 8, 1 << 12, 1 << 2, 1 << 6,
                                  1 << 10, 1 << 14, 1 << 2, 1 << 6, 1 << 10, 1 << 14)
                         << (uint16)(16 + weight_of(query_of(p, row), 0));
  const float16 scale = (float16)(as_float((uint)p.kept_scale)), zero = (float16)(0);
  for (int v = 0; v < DRAWN / 16; ++v) {
    const uint8 two = (uint8)((uint4)(counters[2 * v]), (uint4)(counters[2 * v + 1]));
    vstore16((((uint16)(two, two)) & weights) != (uint16)(0) ? scale : zero, v, factors);
  }
}
#endif
#endif
