// Attention weights: softmax in place over rows of scores [rows][keys] of type COMPUTE, after adding the mask
// (MASK: 0 none, 1 false means minus infinity, 2 a number of type M is added). A row whose scores are all
// minus infinity gets zeros. SUMS: also stores the rows' log-sum-exp. DROPOUT: drops weights after that. On
// CPU drivers a work-item takes rows; on GPUs a work-group of GROUP_SIZE takes one or a few.
// BF16_PARTS: writes the weights as three bf16 parts instead, in lines padded to multiples of 8; but if a
// word equals `stop`, the weights' products are computed in plain float, and the weights are written in
// place.
#include "types.h"
#include "exp.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "lanes.h"
#include "attention.h"

#if CPU_STYLE
// Turns a row of scores into weights; returns its log-sum-exp.
INLINE T softmax_row(__global T *s, long n, long keys) {
  T16 tops = (T16)(-INFINITY), sums = (T16)(0);
  T top = -INFINITY, sum = 0, lane[16];
  long j = 0;
  for (; j + 16 <= n; j += 16) {
    const T16 v = vload16(0, s + j);
    tops = (v > tops) ? v : tops;
  }
  vstore16(tops, 0, lane);
  for (int k = 0; k < 16; ++k) top = lane[k] > top ? lane[k] : top;
  ROLLED for (; j < n; ++j) top = s[j] > top ? s[j] : top;
  const T shift = top == -INFINITY ? 0 : top;  // a NaN in the row makes the sum NaN anyway
  for (j = 0; j + 16 <= n; j += 16) {
    const T16 e = exp_16(vload16(0, s + j) - (T16)(shift));
    sums += e;
    vstore16(e, 0, s + j);
  }
  ROLLED for (; j < n; ++j) sum += s[j] = exp(s[j] - shift);
  vstore16(sums, 0, lane);
  for (int k = 0; k < 16; ++k) sum += lane[k];
  const T scale = sum == 0 ? 0 : 1 / sum;
  for (j = 0; j + 16 <= n; j += 16) vstore16(vload16(0, s + j) * scale, 0, s + j);
  ROLLED for (; j < n; ++j) s[j] *= scale;
  ROLLED for (; j < keys; ++j) s[j] = 0;
  return sum == 0 ? (T)(-INFINITY) : log(sum) + shift;
}

ONE_ITEM __kernel void weights(__global void *score_base, ulong score_offset, __global const void *mask_base,
                               ulong mask_offset, __global void *sums_base, ulong sums_offset,
                               const AttentionParams p) {
  const long r0 = get_global_id(0) * p.per_item, r1 = min((long)p.rows, r0 + p.per_item);
  for (long row = r0; row < r1; ++row) {
    __global T *s = (__global T *)((__global char *)score_base + score_offset) + row * p.keys;
    const long n = seen(p, row);
#if MASK
    __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p, row);
    for (long j = 0; j < n; ++j) s[j] = MASKED(s[j], j);
#endif
    const T total = softmax_row(s, n, p.keys);
#if SUMS
    AT(COMPUTE, sums_base, sums_offset)[place_of(p, row)] = total;
#endif
#if DROPOUT
    for (long j = 0; j < n; ++j) s[j] *= kept(p, row, j);
#endif
  }
}
#else
#if BF16_PARTS
#include "bf16_parts.h"
#define PART_ARGUMENTS                                                    \
  __global void *weight_bf16_parts_base, ulong weight_bf16_parts_offset, \
      __global const void *word_base, ulong word_offset, uint stop,
#else
#define PART_ARGUMENTS
#endif

// LANES work-items (a power of two) share a row. HELD: the number of elements that a lane keeps in
// registers; 0: they stay in memory.
__attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) __kernel void weights(
    __global void *score_base, ulong score_offset, __global const void *mask_base, ulong mask_offset,
    __global void *sums_base, ulong sums_offset, PART_ARGUMENTS const AttentionParams p) {
  __local T shared[GROUP_SIZE];
  const uint id = get_local_id(0), lane = id % LANES;
  const long row = (long)get_group_id(0) * (GROUP_SIZE / LANES) + id / LANES;
  const bool active = row < p.rows;
  const int n = active ? seen(p, row) : 0, keys = active ? p.keys : 0;
  __global T *s = (__global T *)((__global char *)score_base + score_offset) + row * p.keys;
#if MASK
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p, active ? row : 0);
#endif
  T top = -INFINITY, sum = 0;
#if HELD
  T held[HELD];
  UNROLL for (int k = 0; k < HELD; ++k) {
    const int j = lane + k * LANES;
    held[k] = j < n ? MASKED(s[j], j) : -INFINITY;
  }
  UNROLL for (int k = 0; k < HELD; ++k) top = held[k] > top ? held[k] : top;
#else
  for (int j = lane; j < n; j += LANES) {
    const T v = MASKED(s[j], j);
    s[j] = v;
    top = v > top ? v : top;
  }
#endif
  top = max_of_lanes(shared, top, id, lane, LANES, 1);
  const T shift = top == -INFINITY ? 0 : top;  // a NaN in the row makes the sum NaN anyway
#if HELD
  UNROLL for (int k = 0; k < HELD; ++k) sum += held[k] = exp(held[k] - shift);
#else
  for (int j = lane; j < n; j += LANES) sum += s[j] = exp(s[j] - shift);
#endif
  sum = sum_of_lanes(shared, sum, id, lane, LANES, 1);
  const T scale = sum == 0 ? 0 : 1 / sum;
#if SUMS
  if (active && lane == 0)
    AT(COMPUTE, sums_base, sums_offset)[place_of(p, row)] = sum == 0 ? (T)(-INFINITY) : log(sum) + shift;
#endif
#if DROPOUT
#define KEPT(j) * kept(p, row, j)
#else
#define KEPT(j)
#endif
#if BF16_PARTS
  if (*(__global const uint *)((__global const char *)word_base + word_offset) != stop) {
    const int line = (keys + 7) / 8 * 8;
    const ulong bf16_part = (ulong)p.rows * ((p.keys + 7) / 8 * 8);
    __global ushort *to =
        (__global ushort *)((__global char *)weight_bf16_parts_base + weight_bf16_parts_offset) +
        (ulong)row * line;
#if HELD
    UNROLL for (int k = 0; k < HELD; ++k) {
      const int j = lane + k * LANES;
      if (j < line) store_bf16_parts(to + j, bf16_part, j < n ? held[k] * scale KEPT(j) : 0);
    }
#else
    for (int j = lane; j < line; j += LANES) store_bf16_parts(to + j, bf16_part, j < n
        ? s[j] * scale KEPT(j) : 0);
#endif
    return;
  }
#endif
#if HELD
  UNROLL for (int k = 0; k < HELD; ++k) {
    const int j = lane + k * LANES;
    if (j < keys) s[j] = j < n ? held[k] * scale KEPT(j) : 0;
  }
#else
  for (int j = lane; j < keys; j += LANES) s[j] = j < n ? s[j] * scale KEPT(j) : 0;
#endif
}
#endif
