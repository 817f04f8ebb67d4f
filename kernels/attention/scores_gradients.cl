// Backward of attention over a block of scores. `gradients` turns scores into weights (after dropout) and, in
// place, gradients of weights into gradients of scores: P = exp(score - logsumexp), dS = P (dP - delta).
// `deltas` gives delta = sum of grad_out * out of every query (Dao and others, arXiv 2205.14135, appendix B).
#include "types.h"
#include "range.h"
typedef CTYPE(COMPUTE) T;
#include "attention.h"
#if CPU_STYLE
#define AT_ONCE 1
#else
#include "lanes.h"
#define AT_ONCE 4  // loads in flight
#endif

#if CPU_STYLE
GROUP __kernel void deltas(__global void *deltas_base, ulong deltas_offset, __global const void *grad_base,
                           ulong grad_offset, __global const void *out_base, ulong out_offset, long rows,
                           long per_item, long width) {
  FOR_EACH(r, rows, per_item) {
    __global const T *g = AT_CONST(COMPUTE, grad_base, grad_offset) + r * width;
    __global const T *o = AT_CONST(COMPUTE, out_base, out_offset) + r * width;
    T sum = 0;
    for (long i = 0; i < width; ++i) sum += g[i] * o[i];
    AT(COMPUTE, deltas_base, deltas_offset)[r] = sum;
  }
}
#else
// LANES work-items share a row.
__attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) __kernel void deltas(
    __global void *deltas_base, ulong deltas_offset, __global const void *grad_base, ulong grad_offset,
    __global const void *out_base, ulong out_offset, long rows, long per_item, long width) {
  __local T shared[GROUP_SIZE];
  const uint id = get_local_id(0), lane = id % LANES;
  const long row = (long)get_group_id(0) * (GROUP_SIZE / LANES) + id / LANES;
  __global const T *g = AT_CONST(COMPUTE, grad_base, grad_offset) + row * width;
  __global const T *o = AT_CONST(COMPUTE, out_base, out_offset) + row * width;
  T sum = 0;
  for (int i = lane; row < rows && i < width; i += LANES) sum += g[i] * o[i];
  sum = sum_of_lanes(shared, sum, id, lane, LANES, 1);
  if (row < rows && lane == 0) AT(COMPUTE, deltas_base, deltas_offset)[row] = sum;
}
#endif

#if BF16_PARTS
#include "bf16_parts.h"
#define PART_ARGUMENTS                                                   \
  __global void *weight_bf16_parts_base, ulong weight_bf16_parts_offset, \
      __global void *grad_bf16_parts_base,                               \
      ulong grad_bf16_parts_offset, __global const void *word_base, ulong word_offset, uint stop,
#else
#define PART_ARGUMENTS
#endif

// On GPUs the items of a group share a row; CPU_STYLE: an item takes per_item rows. BF16_PARTS: both results
// are written as in scores_weights.cl.
#if !CPU_STYLE
__attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))
#endif
__kernel void gradients(__global void *score_base, ulong score_offset, __global void *grad_base,
                        ulong grad_offset, __global const void *mask_base, ulong mask_offset,
                        __global const void *sums_base, ulong sums_offset, __global const void *deltas_base,
                        ulong deltas_offset, PART_ARGUMENTS const AttentionParams p) {
#if CPU_STYLE
  const long r0 = get_global_id(0) * p.per_item, r1 = min((long)p.rows, r0 + p.per_item), j0 = 0, step = 1;
#else
  const long r0 = get_group_id(0), r1 = r0 + 1, j0 = get_local_id(0), step = get_local_size(0);
#endif
#if BF16_PARTS
  const bool by_bf16_parts = *(__global const uint *)((__global const char *)word_base + word_offset) != stop;
  const long line = (p.keys + 7) / 8 * 8;
  const ulong bf16_part = (ulong)(p.rows * line);
#define KEEP(j, weight, gradient)                                         \
  if (by_bf16_parts) {                                                    \
    store_bf16_parts(weights_to + row * line + (j), bf16_part, (weight)); \
    store_bf16_parts(grads_to + row * line + (j), bf16_part, (gradient)); \
  } else {                                                                \
    s[j] = (weight);                                                      \
    d[j] = (gradient);                                                    \
  }
  __global ushort *weights_to =
      (__global ushort *)((__global char *)weight_bf16_parts_base + weight_bf16_parts_offset);
  __global ushort *grads_to =
      (__global ushort *)((__global char *)grad_bf16_parts_base + grad_bf16_parts_offset);
#else
#define KEEP(j, weight, gradient) \
  s[j] = (weight);                \
  d[j] = (gradient);
#endif
  for (long row = r0; row < r1; ++row) {
    __global T *s = AT(COMPUTE, score_base, score_offset) + row * p.keys;
    __global T *d = AT(COMPUTE, grad_base, grad_offset) + row * p.keys;
    const long n = seen(p, row), place = place_of(p, row);
    const T total = AT_CONST(COMPUTE, sums_base, sums_offset)[place];
    const T delta = AT_CONST(COMPUTE, deltas_base, deltas_offset)[place];
#if MASK
    __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p, row);
#endif
    for (long first = j0; first < n; first += AT_ONCE * step) {
      T score[AT_ONCE], gradient[AT_ONCE];
      UNROLL for (int k = 0; k < AT_ONCE; ++k) {
        const long j = first + k * step;
        score[k] = j < n ? s[j] : 0;
        gradient[k] = j < n ? d[j] : 0;
      }
      UNROLL for (int k = 0; k < AT_ONCE; ++k) {
        const long j = first + k * step;
        if (j >= n) break;
        const T weight = total == -INFINITY ? (T)0 : exp(MASKED(score[k], j) - total);
#if DROPOUT
        const T factor = kept(p, row, j);
        KEEP(j, weight * factor, weight * (gradient[k] * factor - delta))
#else
        KEEP(j, weight, weight * (gradient[k] - delta))
#endif
      }
    }
#if BF16_PARTS
    const long end = by_bf16_parts ? line : (long)p.keys;
#else
    const long end = p.keys;
#endif
    for (long j = n + j0; j < end; j += step) {
      KEEP(j, 0, 0)
    }
  }
}
