// Drawing categories with the weights of a row (type W), which need not add up to 1.
//   cumulate   sums[row][c] = the weights up to and including c
//   judge      reports a row with a weight that is negative or not finite, and one without a positive weight
//   sample     with replacement: the first category whose sum exceeds a uniform number times the row's total
//   race       without replacement: times[row][c] = -ln(u) / weight; the smallest times are the samples
#include "types.h"
#include "draw.h"
#include "faults.h"

GROUP __kernel void cumulate(__global void *sum_base, ulong sum_offset, __global const void *weight_base,
                             ulong weight_offset, long rows, long per_item, long categories) {
  FOR_EACH(row, rows, per_item) {
    __global REAL *sums = (__global REAL *)((__global char *)sum_base + sum_offset) + row * categories;
    __global const STYPE(W) *weights = AT_CONST(W, weight_base, weight_offset) + row * categories;
    REAL sum = 0;
    for (long c = 0; c < categories; ++c) {
      sum += (REAL)LOAD(W, weights, c);
      sums[c] = sum;
    }
  }
}

// The site is that of FaultKind Weight, `no_weight` that of NoWeight.
GROUP __kernel void judge(__global const void *weight_base, ulong weight_offset, long rows, long per_item,
                          long categories, FAULT_PARAMETERS, int no_weight) {
  FOR_EACH(row, rows, per_item) {
    __global const STYPE(W) *weights = AT_CONST(W, weight_base, weight_offset) + row * categories;
    bool valid = true, positive = false;
    for (long c = 0; c < categories; ++c) {
      const REAL weight = (REAL)LOAD(W, weights, c);
      valid = valid && weight >= 0 && weight < (REAL)INFINITY;
      positive = positive || weight > 0;
    }
    if (!valid) report_fault(faults, fault_site, row, 0);
    else if (!positive) report_fault(faults, no_weight, row, 0);
  }
}

// The first position whose sum is above `goal` (with `reach`: at least `goal`).
INLINE long find(__global const REAL *sums, long categories, REAL goal, bool reach) {
  long low = 0, high = categories;
  while (low < high) {
    const long k = (low + high) / 2;
    if (reach ? sums[k] >= goal : sums[k] > goal) high = k;
    else low = k + 1;
  }
  return low;
}

GROUP __kernel void sample(__global void *out_base, ulong out_offset, __global const void *sum_base,
                           ulong sum_offset, const RandomParams p) {
  const long categories = p.p[0], samples = p.p[1];
  __global long *out = AT(i64, out_base, out_offset);
  DRAW(p, i, w, {
    __global const REAL *sums =
        (__global const REAL *)((__global const char *)sum_base + sum_offset) + i / samples * categories;
    const REAL total = sums[categories - 1];
    const long at = find(sums, categories, (REAL)UNIT_BITS(w) * REAL_UNIT * total, false);
    out[i] = at < categories ? at : min(find(sums, categories, total, true), categories - 1);
  })
}

GROUP __kernel void race(__global void *time_base, ulong time_offset, __global const void *weight_base,
                         ulong weight_offset, const RandomParams p) {
  __global REAL *times = (__global REAL *)((__global char *)time_base + time_offset);
  __global const STYPE(W) *weights = AT_CONST(W, weight_base, weight_offset);
  DRAW(p, i, w, {
    const REAL weight = (REAL)LOAD(W, weights, i);
    const REAL time = -log((REAL)(UNIT_BITS(w) + 1) * REAL_UNIT) / weight;
    times[i] = weight > 0 ? time : (REAL)INFINITY;
  })
}
