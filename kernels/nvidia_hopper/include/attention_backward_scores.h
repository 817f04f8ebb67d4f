// What attention backward on Hopper's matrix units makes of scores in registers: weights, and from these and
// the weights' gradients the gradients of the scores, with masks and dropout. This item holds columns 8 j + 2
// quarter and the next, for all j, of rows `row` (numbers 4 j, 4 j + 1) and row + 8; names are those of
// backward.cl. Rows are keys if KEYS_KEPT, else queries. Statistics of queries are then in local memory, or
// in registers: for each 64 queries 64 sums, then 64 deltas.
#ifndef OCLTENSOR_ATTENTION_BACKWARD_SCORES_H
#define OCLTENSOR_ATTENTION_BACKWARD_SCORES_H
#include "attention_products.h"

#if KEYS_KEPT
#define STATISTICS_AT(j, which) \
  *(__local float2 *)(statistics + slot * 2 * BN + (j) / 8 * 128 + (j) % 8 * 8 + (which) + quarter * 2)
#define WAIT_FOR_PRODUCTS            \
  ALL_DONE(OUTPUTS, d0); \
  ALL_DONE(OUTPUTS, d1);
#define MASK_CAUSAL(n)                                                 \
  {                                                                    \
    const int less = row - (n) * BN - quarter * 2;                     \
    UNROLL for (int j = 0; j < BN / 8; ++j) {                          \
      s[j * 4] = j * 8 >= less ? s[j * 4] : -INFINITY;                 \
      s[j * 4 + 1] = j * 8 + 1 >= less ? s[j * 4 + 1] : -INFINITY;     \
      s[j * 4 + 2] = j * 8 >= less + 8 ? s[j * 4 + 2] : -INFINITY;     \
      s[j * 4 + 3] = j * 8 + 1 >= less + 8 ? s[j * 4 + 3] : -INFINITY; \
    }                                                                  \
  }
// The mask of a head, where rows are keys.
#define MASK_KEYS(n)                                                                                         \
  {                                                                                                          \
    UNROLL for (int h = 0; h < 2; ++h) {                                                                     \
      __global const STYPE(M) *line_ = mask + min(row + h * 8, (int)p.kept_rows - 1) * p.scores.mask_column; \
      UNROLL for (int j = 0; j < BN / 8; ++j) {                                                              \
        const int x_ = min((n) * BN + quarter * 2 + j * 8, streamed - 1);                                    \
        const float2 m_ = (float2)((float)LOAD(M, line_, x_ * p.scores.mask_row),                            \
                                   (float)LOAD(M, line_, min(x_ + 1, streamed - 1) * p.scores.mask_row));    \
        MASK_PAIR(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1], scale, m_)                                         \
      }                                                                                                      \
    }                                                                                                        \
  }
// Keys that do not exist: their weights would be multiplied by keys of zeros, and may be infinite.
#define MASK_BEYOND                                                \
  if (ADDS_QUERY && t.first + BM > (int)p.kept_rows) {             \
    UNROLL for (int i = 0; i < SCORE_COUNT; ++i)                   \
      if (row + (i & 2) * 4 >= (int)p.kept_rows) s[i] = -INFINITY; \
  }
#if ITEMS_READ_MASK
#define MASK_BLOCK(masked, n)  \
  {                            \
    MASK_KEYS(n)               \
    if (CAUSAL) MASK_CAUSAL(n) \
    MASK_BEYOND                \
  }
#elif MASK
#define MASK_BLOCK(masked, n)                           \
  ADD_MASK_COLUMNS(own_mask + slot * MASK_BYTES, scale) \
  if (masked) MASK_CAUSAL(n)                            \
  MASK_BEYOND
#else
#define MASK_BLOCK(masked, n) \
  if (masked) MASK_CAUSAL(n)  \
  MASK_BEYOND
#endif
#define FIRST_KEPT \
  first_along_keys(p.scores, matrix, quarter * 2, t.first + warpgroup * 64 + warp * 16)
#define DRAW_DROPOUT DRAW_BLOCK(kept_along_keys, first_kept, 16 * p.scores.pair_counters, BLOCK_AT(k))
#define KEPT_AT ALONG_KEYS
#define PACK_WEIGHTS UNROLL for (int i = 0; i < BN / 4; ++i) w[i] = PACK_KEPT(s[2 * i], s[2 * i + 1]);
#define WEIGHTS                                             \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                 \
    const float2 sum = STATISTICS_AT(j, 0);                 \
    WEIGHTS_OF(j, sum.x, sum.y, sum.x, sum.y)               \
  }                                                         \
  PACK_WEIGHTS                                              \
  ADD_ROWS(d1, w, across1 + slot * (2 * BLOCK_BYTES >> 4)); \
  ALL_BUT_ONE_DONE_OF(SCORE_COUNT, e);
#define GRADIENTS                                       \
  UNROLL for (int j = 0; j < BN / 8; ++j) {             \
    const float2 delta = STATISTICS_AT(j, 64);          \
    GRADIENTS_OF(j, delta.x, delta.y, delta.x, delta.y) \
  }
#else
#define WAIT_FOR_PRODUCTS ALL_DONE(OUTPUTS, d0);
#if ITEMS_READ_MASK
#define MASK_BLOCK(masked, n) ADD_MASK(n, mask, (int)p.kept_rows, streamed, scale)
#elif MASK
#define MASK_BLOCK(masked, n)                        \
  ADD_MASK_ROWS(own_mask + slot * MASK_BYTES, scale) \
  if (masked) MASK_ROWS(n)
#else
#define MASK_BLOCK(masked, n) \
  if (masked) MASK_ROWS(n)
#endif
#define KEPT_AT ACROSS_KEYS
#define FIRST_KEPT first_across_keys(p.scores, matrix, row)
#define DRAW_DROPOUT DRAW_BLOCK(kept_across_keys, first_kept, 4, BLOCK_AT(k))
#define WEIGHTS                                                                 \
  UNROLL for (int j = 0; j < BN / 8; ++j) WEIGHTS_OF(j, sum0, sum0, sum1, sum1) \
  ALL_DONE(SCORE_COUNT, e);
#define GRADIENTS \
  UNROLL for (int j = 0; j < BN / 8; ++j) GRADIENTS_OF(j, delta0, delta0, delta1, delta1)
#endif

// The weights of fragment j by the four elements' sums, and gradients of its scores by their deltas.
#define WEIGHTS_OF(j, s0, s1, s2, s3)                                       \
  {                                                                         \
    s[(j)*4] = WITH_DROPOUT_SIGN(fast_exp2(LOG_WEIGHT(s[(j)*4], unit, s0)), j, 0);     \
    s[(j)*4 + 1] = WITH_DROPOUT_SIGN(fast_exp2(LOG_WEIGHT(s[(j)*4 + 1], unit, s1)), j, 1); \
    s[(j)*4 + 2] = WITH_DROPOUT_SIGN(fast_exp2(LOG_WEIGHT(s[(j)*4 + 2], unit, s2)), j, 2); \
    s[(j)*4 + 3] = WITH_DROPOUT_SIGN(fast_exp2(LOG_WEIGHT(s[(j)*4 + 3], unit, s3)), j, 3); \
  }
#define GRADIENTS_OF(j, d0, d1, d2, d3)                                    \
  {                                                                        \
    g[(j)*2] = PACK(GRADIENT((j)*4, d0), GRADIENT((j)*4 + 1, d1));         \
    g[(j)*2 + 1] = PACK(GRADIENT((j)*4 + 2, d2), GRADIENT((j)*4 + 3, d3)); \
  }
#if DROPOUT
// Dropped weights have a negative sign: packed they become 0, and the sum of a weight and its absolute value
// is twice the weight, or 0. So deltas are twice what they are (backward_rows.cl), and so are gradients. This
// leaves the units for logic, of which there are half as many, one operation a weight.
#define WITH_DROPOUT_SIGN(v, j, i) \
  as_float(as_uint(v) | \
           (~kept_ones[(j) / 8] << (31 - KEPT_BIT(j, (i) % 2, KEPT_AT(j, (i) / 2))) & 0x80000000u))
#define PACK_KEPT CAT(pack_positive_, TYPE)
#define GRADIENT(i, delta) fma(s[i] + fabs(s[i]), e[i], -(fabs(s[i]) * (delta)))
#else
#undef DRAW_DROPOUT
#define DRAW_DROPOUT
#define WITH_DROPOUT_SIGN(v, j, i) (v)
#define PACK_KEPT PACK
#define GRADIENT(i, delta) (s[i] * (e[i] - (delta)))
#endif
#endif
