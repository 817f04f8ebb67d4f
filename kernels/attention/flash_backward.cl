// Gradients of attention on CPU drivers, without a matrix of scores: weights are recomputed from the rows'
// log-sum-exp. A work-item takes the keys of one key head, or p.keys_at_once of them; for each block of keys
// it goes through blocks of queries: P = exp(score - logsumexp), dP = grad value^T, dS = P (dP - delta) with
// delta = grad . out, and then grad_value += P^T grad, grad_key += dS^T query, and its own part of grad_query
// += dS key. The order of every sum is fixed.
// Defines: MASK (M its type), DROPOUT.
#include "flash.h"

#define KEYS 128
#define QUERIES 64
#define PITCH (KEYS + 16)

INLINE void clear_rows(__global float *target, long row, long from, long to, long width) {
  for (long r = from; r < to; ++r)
    for (long c = 0; c < padded(width); c += 16) vstore16((float16)(0), 0, target + r * row + c);
}

// target[r] (+)= sum over n of weights[r * across + j * along] * rows[j], for `count` rows of `width`
// columns.
INLINE void add_product(__global float *target, long target_row, int count, long width, bool first,
                        const SCRATCH float *weights, int across, int along, __global const float *rows,
                        long row, int n) {
  for (int r = 0; r < count; r += TILE)
    for (long c = 0; c < width; c += PANEL) {
      __global float *t = target + r * target_row + c;
      const int here = min(TILE, count - r);
      Tile sum;
      FOR_TILE sum[i][v] = first ? (float16)(0) : vload16(v, t + min(i, here - 1) * target_row);
      add_rows(sum, weights + r * across, across, along, rows + c, row, n);
      FOR_TILE if (i < here) vstore16(sum[i][v], v, t + i * target_row);
    }
}

// Turns scores `s` into weights, and the gradients of weights `d` into gradients of scores, times `scale`.
// From `n` to `end` both become 0.
INLINE void differentiate(SCRATCH float *s, SCRATCH float *d, int n, int end, float total, float delta,
                          float scale, const AttentionParams p, long place, long j0) {
  const bool nothing = total == -INFINITY;
#if DROPOUT
  float factors[DRAWN];
#endif
  for (int j = 0; j < end; j += 16) {
    const int16 inside = (int16)(j) + LANE_NUMBERS < (int16)(nothing ? 0 : n);
    const float16 weight = exp_16(vload16(0, s + j) - (float16)(total));
    const float16 gradient = vload16(0, d + j);
#if DROPOUT
    if (j % DRAWN == 0) kept_factors(p, place, j0 + j, factors);
    const float16 factor = vload16(0, factors + j % DRAWN);
    vstore16(inside ? weight * factor : (float16)(0), 0, s + j);
    const float16 difference = gradient * factor - (float16)(delta);
#else
    vstore16(inside ? weight : (float16)(0), 0, s + j);
    const float16 difference = gradient - (float16)(delta);
#endif
    vstore16(inside ? weight * difference * (float16)(scale) : (float16)(0), 0, d + j);
  }
}

ONE_ITEM __kernel void flash_backward(
    __global void *grad_query_base, ulong grad_query_offset, __global void *grad_key_base,
    ulong grad_key_offset, __global void *grad_value_base, ulong grad_value_offset,
    __global const void *grad_base, ulong grad_offset, __global const void *query_base, ulong query_offset,
    __global const void *key_base, ulong key_offset, __global const void *key_panels_base,
    ulong key_panels_offset, __global const void *value_panels_base, ulong value_panels_offset,
    __global const void *out_base, ulong out_offset, __global const void *sums_base, ulong sums_offset,
    __global const void *mask_base, ulong mask_offset, const FlashParams p) {
  const long keys = p.scores.keys, queries = p.scores.queries, key_heads = p.heads / p.groups;
  const long z = get_global_id(1), batch = z / key_heads, key_head = z % key_heads;
  const long first_key = get_global_id(0) * p.keys_at_once, end_key = min(keys, first_key + p.keys_at_once);
  __global const float *key = AT_CONST(f32, key_base, key_offset) + place_in(p.key, batch, key_head, 0);
  __global const float *key_panels =
      AT_CONST(f32, key_panels_base, key_panels_offset) + z * padded(keys) * p.depth;
  __global const float *value_panels =
      AT_CONST(f32, value_panels_base, value_panels_offset) + z * padded(keys) * p.width;
  __global float *grad_key =
      AT(f32, grad_key_base, grad_key_offset) + place_in(p.grad_key, batch, key_head, 0);
  __global float *grad_value =
      AT(f32, grad_value_base, grad_value_offset) + place_in(p.grad_value, batch, key_head, 0);
  __global float *grad_query = AT(f32, grad_query_base, grad_query_offset) + get_global_id(0) * p.piece_step;
  const float scale = as_float((uint)p.scale);
  SCRATCH float s[QUERIES * PITCH], d[QUERIES * PITCH];
  for (long j0 = first_key; j0 < end_key; j0 += KEYS) {
    const int n = min((long)KEYS, end_key - j0);
    bool fresh = true;  // nothing was added to these keys' gradients yet
    for (long head = key_head * p.groups; head < (key_head + 1) * p.groups; ++head) {
      __global const float *query =
          AT_CONST(f32, query_base, query_offset) + place_in(p.query, batch, head, 0);
      __global const float *grad = AT_CONST(f32, grad_base, grad_offset) + place_in(p.grad, batch, head, 0);
      __global const float *out = AT_CONST(f32, out_base, out_offset) + place_in(p.out, batch, head, 0);
      __global float *gq = grad_query + place_in(p.grad_query, batch, head, 0);
      // Earlier queries see none of these keys.
      const long begin = p.scores.causal ? min(queries, j0 / QUERIES * QUERIES) : 0;
      if (j0 == first_key) clear_rows(gq, p.grad_query.row, 0, begin, p.depth);
      for (long q0 = begin; q0 < queries; q0 += QUERIES) {
        const int rows = min((long)QUERIES, queries - q0);
        // One loop for two products that differ in their operands only: LLVM takes half a second to compile
        // each copy.
        ROLLED for (int of_value = 0; of_value < 2; ++of_value) {
          __global const float *of_rows = of_value ? grad + q0 * p.grad.row : query + q0 * p.query.row;
          const long row = of_value ? p.grad.row : p.query.row, c = of_value ? p.width : p.depth;
          for (int r = 0; r < rows; r += TILE) {
            __global const float *at[TILE];
            UNROLL for (int i = 0; i < TILE; ++i) at[i] = of_rows + min(r + i, rows - 1) * row;
            multiply_by_panels((of_value ? d : s) + r * PITCH, PITCH, at,
                               (__global const float16 *)((of_value ? value_panels : key_panels) + j0 * c), c,
                               n, of_value ? 1 : scale);
          }
        }
        ROLLED for (int r = 0; r < rows; ++r) {
          const long place = (batch * p.heads + head) * queries + q0 + r;
          const int sees = clamp(seen(p.scores, place) - j0, 0L, (long)n);
          __global const float *g = grad + (q0 + r) * p.grad.row, *o = out + (q0 + r) * p.out.row;
          float16 products = (float16)(0);
          long c = 0;
          for (; c + 16 <= p.width; c += 16) products = fma(vload16(0, g + c), vload16(0, o + c), products);
          float delta = sum_of_lanes(products);
          ROLLED for (; c < p.width; ++c) delta += g[c] * o[c];
#if MASK
          mask_scores(s + r * PITCH, AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p.scores, place),
                      p.scores.mask_column, j0, sees);
#endif
          differentiate(s + r * PITCH, d + r * PITCH, sees, padded(n),
                        AT_CONST(f32, sums_base, sums_offset)[place], delta, scale, p.scores, place, j0);
        }
        ROLLED for (int which = 0; which < 3; ++which) {
          const bool to_value = which == 0, to_key = which == 1, of_keys = which == 2;
          __global float *target = to_value ? grad_value + j0 * p.grad_value.row
                                   : to_key ? grad_key + j0 * p.grad_key.row
                                            : gq + q0 * p.grad_query.row;
          __global const float *from = to_value ? grad + q0 * p.grad.row
                                       : to_key ? query + q0 * p.query.row
                                                : key + j0 * p.key.row;
          add_product(target, to_value ? p.grad_value.row : to_key ? p.grad_key.row : p.grad_query.row,
                      of_keys ? rows : n, to_value ? p.width : p.depth, of_keys ? j0 == first_key : fresh,
                      to_value ? s : d, of_keys ? PITCH : 1, of_keys ? 1 : PITCH, from,
                      to_value ? p.grad.row : to_key ? p.query.row : p.key.row, of_keys ? n : rows);
        }
        fresh = false;
      }
    }
    if (fresh) {
      clear_rows(grad_key + j0 * p.grad_key.row, p.grad_key.row, 0, n, p.depth);
      clear_rows(grad_value + j0 * p.grad_value.row, p.grad_value.row, 0, n, p.width);
    }
  }
}
