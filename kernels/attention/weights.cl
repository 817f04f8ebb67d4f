// Attention weights: softmax in place over rows of scores [rows][keys] of type COMPUTE, after adding the mask (MASK: 0
// none, 1 false means minus infinity, 2 a number of type M is added). A row whose scores are all minus infinity gets
// zeros. SUMS: the rows' log-sum-exp is stored, too. DROPOUT: weights are dropped after that. A work-item takes rows on
// CPU drivers; on GPUs a work-group of GROUP_SIZE takes one.
#include "types.h"
#include "exp.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "lanes.h"
#include "attention.h"

#if ROWS
// Returns the log-sum-exp.
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
  const T shift = top == -INFINITY ? 0 : top;  // NaN reaches the sum by itself
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
                               ulong mask_offset, __global void *sum_base, ulong sum_offset,
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
    AT(COMPUTE, sum_base, sum_offset)[place_of(p, row)] = total;
#endif
#if DROPOUT
    for (long j = 0; j < n; ++j) s[j] *= kept(p, place_of(p, row), j);
#endif
  }
}
#else
__attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) __kernel void weights(
    __global void *score_base, ulong score_offset, __global const void *mask_base, ulong mask_offset,
    __global void *sum_base, ulong sum_offset, const AttentionParams p) {
  __local T shared[GROUP_SIZE];
  const uint id = get_local_id(0);
  const long row = get_group_id(0), n = seen(p, row);
  __global T *s = (__global T *)((__global char *)score_base + score_offset) + row * p.keys;
#if MASK
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p, row);
#endif
  T top = -INFINITY, sum = 0;
  for (long j = id; j < n; j += GROUP_SIZE) {
    const T v = MASKED(s[j], j);
    s[j] = v;
    top = v > top ? v : top;
  }
  top = meet_max(shared, top, id, id, GROUP_SIZE, 1);
  const T shift = top == -INFINITY ? 0 : top;
  for (long j = id; j < n; j += GROUP_SIZE) {
    const T e = exp(s[j] - shift);
    s[j] = e;
    sum += e;
  }
  sum = meet_add(shared, sum, id, id, GROUP_SIZE, 1);
  const T scale = sum == 0 ? 0 : 1 / sum;
#if SUMS
  if (id == 0)
    AT(COMPUTE, sum_base, sum_offset)[place_of(p, row)] = sum == 0 ? (T)(-INFINITY) : log(sum) + shift;
#endif
  for (long j = id; j < p.keys; j += GROUP_SIZE)
#if DROPOUT
    s[j] = j < n ? s[j] * scale * kept(p, place_of(p, row), j) : 0;
#else
    s[j] = j < n ? s[j] * scale : 0;
#endif
}
#endif
