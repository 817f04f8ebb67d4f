// What attention forward on Hopper's matrix units makes of scores in registers: with masks and dropout, the
// weights of a block relative to about the largest score so far, packed. Rows are queries; names are those of
// forward.cl.
#ifndef OCLTENSOR_ATTENTION_FORWARD_SCORES_H
#define OCLTENSOR_ATTENTION_FORWARD_SCORES_H
#include "attention_products.h"

// Turns scores into weights relative to about the largest score so far; factor0 and factor1 are the factors
// for the results so far. A larger score counts from weights of 2^LEAST_RISE on, so that the results of most
// blocks need no factor.
#define LEAST_RISE 8.0f
#define SOFTEN                                                                              \
  {                                                                                         \
    float a0 = larger(s[0], s[1]), a1 = larger(s[2], s[3]), b0 = larger(s[4], s[5]),        \
          b1 = larger(s[6], s[7]);                                                          \
    UNROLL for (int j = 2; j < BN / 8; j += 2) {                                            \
      a0 = larger(a0, larger(s[j * 4], s[j * 4 + 1]));                                      \
      a1 = larger(a1, larger(s[j * 4 + 2], s[j * 4 + 3]));                                  \
      b0 = larger(b0, larger(s[j * 4 + 4], s[j * 4 + 5]));                                  \
      b1 = larger(b1, larger(s[j * 4 + 6], s[j * 4 + 7]));                                  \
    }                                                                                       \
    a0 = larger(a0, b0);                                                                    \
    a1 = larger(a1, b1);                                                                    \
    a0 = larger(a0, from_neighbour_float(a0, 1));                                           \
    a1 = larger(a1, from_neighbour_float(a1, 1));                                           \
    a0 = larger(a0, from_neighbour_float(a0, 2));                                           \
    a1 = larger(a1, from_neighbour_float(a1, 2));                                           \
    a0 = (a0 - top0) * unit > LEAST_RISE ? a0 : top0;                                       \
    a1 = (a1 - top1) * unit > LEAST_RISE ? a1 : top1;                                       \
    const float shift0 = a0 == -INFINITY ? 0.0f : a0, shift1 = a1 == -INFINITY ? 0.0f : a1; \
    factor0 = fast_exp2((top0 - shift0) * unit);                                            \
    factor1 = fast_exp2((top1 - shift1) * unit);                                            \
    top0 = a0;                                                                              \
    top1 = a1;                                                                              \
    const float unit0 = ROW_UNIT(shift0, unit), unit1 = ROW_UNIT(shift1, unit);             \
    const float less0 = -shift0 * unit0, less1 = -shift1 * unit1;                           \
    float x0 = 0.0f, x1 = 0.0f, y0 = 0.0f, y1 = 0.0f;                                       \
    UNROLL for (int j = 0; j < BN / 8; ++j) {                                               \
      s[j * 4] = fast_exp2(fma(s[j * 4], unit0, less0));                                    \
      s[j * 4 + 1] = fast_exp2(fma(s[j * 4 + 1], unit0, less0));                            \
      s[j * 4 + 2] = fast_exp2(fma(s[j * 4 + 2], unit1, less1));                            \
      s[j * 4 + 3] = fast_exp2(fma(s[j * 4 + 3], unit1, less1));                            \
      x0 += s[j * 4];                                                                       \
      y0 += s[j * 4 + 1];                                                                   \
      x1 += s[j * 4 + 2];                                                                   \
      y1 += s[j * 4 + 3];                                                                   \
    }                                                                                       \
    total0 = fma(total0, factor0, x0 + y0);                                                 \
    total1 = fma(total1, factor1, x1 + y1);                                                 \
  }
// Releases the slot of block n, whose scores are there, when its mask is read, and masks them.
#define RELEASE_KEYS            \
  RELEASE(empty_k + 8 * k_slot) \
  NEXT_SLOT(k_slot, k_phase)
#if ITEMS_READ_MASK
#define FINISH_SCORES(masked) \
  RELEASE_KEYS                \
  ADD_MASK(n, mask, queries, keys, scale)
#elif MASK
#define FINISH_SCORES(masked)                          \
  ADD_MASK_ROWS(own_mask + k_slot * MASK_BYTES, scale) \
  RELEASE_KEYS                                         \
  if (masked) MASK_ROWS(n)
#else
#define FINISH_SCORES(masked) \
  RELEASE_KEYS                \
  if (masked) MASK_ROWS(n)
#endif
#if DROPOUT
#define DRAW_DROPOUT DRAW_BLOCK(kept_across_keys, first_kept, 4, n)
#define PACK_KEPT(j, h) ALL_KEPT(PACK(s[(j)*4 + (h)*2], s[(j)*4 + (h)*2 + 1]), j, ACROSS_KEYS, h)
#else
#define DRAW_DROPOUT
#define PACK_KEPT(j, h) PACK(s[(j)*4 + (h)*2], s[(j)*4 + (h)*2 + 1])
#endif
// Packs weights, and drops those that are not kept.
#define PACK_WEIGHTS                        \
  UNROLL for (int j = 0; j < BN / 8; ++j) { \
    w[2 * j] = PACK_KEPT(j, 0);             \
    w[2 * j + 1] = PACK_KEPT(j, 1);         \
  }
#endif
