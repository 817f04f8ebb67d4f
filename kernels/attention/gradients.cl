// Backward of attention over a block of scores. `gradients` turns scores into weights (after dropout) and, in place,
// gradients of weights into gradients of scores: P = exp(score - logsumexp), dS = P (dP - delta). `deltas` gives
// delta = sum of grad_out * out of every query (Dao and others, arXiv 2205.14135, appendix B).
#include "types.h"
#include "range.h"
typedef CTYPE(COMPUTE) T;
#include "attention.h"

GROUP __kernel void deltas(__global void *delta_base, ulong delta_offset, __global const void *grad_base,
                           ulong grad_offset, __global const void *out_base, ulong out_offset, long rows, long per_item,
                           long width) {
  FOR_EACH(r, rows, per_item) {
    __global const T *g = AT_CONST(COMPUTE, grad_base, grad_offset) + r * width;
    __global const T *o = AT_CONST(COMPUTE, out_base, out_offset) + r * width;
    T sum = 0;
    for (long i = 0; i < width; ++i) sum += g[i] * o[i];
    AT(COMPUTE, delta_base, delta_offset)[r] = sum;
  }
}

// Items of a group share a row on GPUs; ROWS: an item takes per_item rows.
__kernel void gradients(__global void *score_base, ulong score_offset, __global void *grad_base, ulong grad_offset,
                        __global const void *mask_base, ulong mask_offset, __global const void *sum_base,
                        ulong sum_offset, __global const void *delta_base, ulong delta_offset,
                        const AttentionParams p) {
#if ROWS
  const long r0 = get_global_id(0) * p.per_item, r1 = min((long)p.rows, r0 + p.per_item), j0 = 0, step = 1;
#else
  const long r0 = get_group_id(0), r1 = r0 + 1, j0 = get_local_id(0), step = get_local_size(0);
#endif
  for (long row = r0; row < r1; ++row) {
    __global T *s = AT(COMPUTE, score_base, score_offset) + row * p.keys;
    __global T *d = AT(COMPUTE, grad_base, grad_offset) + row * p.keys;
    const long n = seen(p, row), place = place_of(p, row);
    const T total = AT_CONST(COMPUTE, sum_base, sum_offset)[place];
    const T delta = AT_CONST(COMPUTE, delta_base, delta_offset)[place];
#if MASK
    __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p, row);
#endif
    for (long j = j0; j < n; j += step) {
      const T weight = total == -INFINITY ? (T)0 : exp(MASKED(s[j], j) - total);
#if DROPOUT
      const T factor = kept(p, place, j);
      s[j] = weight * factor;
      d[j] = weight * (d[j] * factor - delta);
#else
      s[j] = weight;
      d[j] = weight * (d[j] - delta);
#endif
    }
    for (long j = n + j0; j < p.keys; j += step) s[j] = d[j] = 0;
  }
}
