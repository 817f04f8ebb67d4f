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
#define DRAIN            \
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
        MASK_PAIR(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1], scale_log2, m_)                                    \
      }                                                                                                      \
    }                                                                                                        \
  }
// Keys that do not exist: their weights would be multiplied by keys of zeros, and may be infinite.
#define MASK_BEYOND                                                \
  if (ADDS_QUERY && t.first + BM > (int)p.kept_rows) {             \
    UNROLL for (int i = 0; i < SCORE_COUNT; ++i)                   \
      if (row + (i & 2) * 4 >= (int)p.kept_rows) s[i] = -INFINITY; \
  }
#if MASK
#define MASK_BLOCK(masked, n)  \
  {                            \
    MASK_KEYS(n)               \
    if (CAUSAL) MASK_CAUSAL(n) \
    MASK_BEYOND                \
  }
#else
#define MASK_BLOCK(masked, n) \
  if (masked) MASK_CAUSAL(n)  \
  MASK_BEYOND
#endif
#define FIRST_KEPT(n) \
  first_along_keys(p.scores, matrix, (n) * BN + quarter * 2, t.first + warpgroup * 64 + warp * 16)
#define DRAW_DROPOUT DRAW_BLOCK(kept_along_keys, FIRST_KEPT(BLOCK_AT(k)), 4 * p.scores.pair_counters)
#if DROPOUT
#define PACK_WEIGHTS                                                                     \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                                              \
    const uint bits = KEPT_BITS(j);                                                      \
    w[2 * j] = PACK(bits & 1 ? s[j * 4] : 0.0f, bits & 2 ? s[j * 4 + 1] : 0.0f);         \
    w[2 * j + 1] = PACK(bits & 4 ? s[j * 4 + 2] : 0.0f, bits & 8 ? s[j * 4 + 3] : 0.0f); \
  }
#else
#define PACK_WEIGHTS UNROLL for (int i = 0; i < BN / 4; ++i) w[i] = PACK(s[2 * i], s[2 * i + 1]);
#endif
#define WEIGHTS                                                \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                    \
    const float2 sum = STATISTICS_AT(j, 0);                    \
    s[j * 4] = fast_exp2(fma(s[j * 4], unit, -sum.x));         \
    s[j * 4 + 1] = fast_exp2(fma(s[j * 4 + 1], unit, -sum.y)); \
    s[j * 4 + 2] = fast_exp2(fma(s[j * 4 + 2], unit, -sum.x)); \
    s[j * 4 + 3] = fast_exp2(fma(s[j * 4 + 3], unit, -sum.y)); \
  }                                                            \
  PACK_WEIGHTS                                                 \
  ADD_ROWS(d1, w, across1 + slot * (2 * BLOCK_BYTES >> 4));    \
  ALL_BUT_ONE_DONE_OF(SCORE_COUNT, e);
#define GRADIENTS                                                                                          \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                                                                \
    const float2 delta = STATISTICS_AT(j, 64);                                                             \
    DROP_GRADIENTS(j)                                                                                      \
    g[j * 2] = PACK(s[j * 4] * (e[j * 4] - delta.x), s[j * 4 + 1] * (e[j * 4 + 1] - delta.y));             \
    g[j * 2 + 1] = PACK(s[j * 4 + 2] * (e[j * 4 + 2] - delta.x), s[j * 4 + 3] * (e[j * 4 + 3] - delta.y)); \
  }
#else
#define DRAIN ALL_DONE(OUTPUTS, d0);
#if MASK
#define MASK_BLOCK(masked, n) ADD_MASK(n, mask, (int)p.kept_rows, streamed, scale_log2)
#else
#define MASK_BLOCK(masked, n) \
  if (masked) MASK_ROWS(n)
#endif
#define FIRST_KEPT(n) (first_across_keys(p.scores, matrix, row) + (ulong)((n) * (BN / 8)))
#define DRAW_DROPOUT DRAW_BLOCK(kept_across_keys, FIRST_KEPT(BLOCK_AT(k)), 1)
#define WEIGHTS                                               \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                   \
    s[j * 4] = fast_exp2(fma(s[j * 4], unit, -sum0));         \
    s[j * 4 + 1] = fast_exp2(fma(s[j * 4 + 1], unit, -sum0)); \
    s[j * 4 + 2] = fast_exp2(fma(s[j * 4 + 2], unit, -sum1)); \
    s[j * 4 + 3] = fast_exp2(fma(s[j * 4 + 3], unit, -sum1)); \
  }                                                           \
  ALL_DONE(SCORE_COUNT, e);
#define GRADIENTS                                                                                        \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                                                              \
    DROP_GRADIENTS(j)                                                                                    \
    g[j * 2] = PACK(s[j * 4] * (e[j * 4] - delta0), s[j * 4 + 1] * (e[j * 4 + 1] - delta0));             \
    g[j * 2 + 1] = PACK(s[j * 4 + 2] * (e[j * 4 + 2] - delta1), s[j * 4 + 3] * (e[j * 4 + 3] - delta1)); \
  }
#endif
#if DROPOUT
#define DROP_GRADIENTS(j)                                          \
  {                                                                \
    UNROLL for (int i = 0; i < 4; ++i) e[(j)*4 + i] *= kept_scale; \
    DROP(e, j, KEPT_BITS(j))                                       \
  }
#else
#undef DRAW_DROPOUT
#define DRAW_DROPOUT
#define DROP_GRADIENTS(j)
#endif
#endif
