// Products of a few rows of x (ROWS: 1, 2, 4, 8) with a quantised weight, for GPUs: LANES work-items (8 to
// 256, a power of two) share COLS rows of the weight, its units interleaved, and combine their sums in local
// memory in a fixed order. Defines: those of quantised_x.h; HAS_BIAS, COLS, LANES.
#include "quantised_x.h"

#define ITEMS 256
#define TEAMS (ITEMS / LANES)
#define SUMS (ROWS * COLS)

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void decode(__global void *out_base, ulong out_offset, __global const void *x_base, ulong x_offset,
                     __global const void *weight_base, ulong weight_offset, __global const void *scale_base,
                     ulong scale_offset, __global const void *zero_base, ulong zero_offset,
                     __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  __local float shared[ITEMS];
  Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  SHARE_CODES(w)
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset);
  const uint id = get_local_id(0), lane = id % LANES, team = id / LANES;
  const long n0 = ((long)get_group_id(0) * TEAMS + team) * COLS;
  float16 sum[SUMS];
  UNROLL for (int i = 0; i < SUMS; ++i) sum[i] = (float16)(0);
  for (long k = (long)lane * UNIT; k < p.k; k += LANES * UNIT) {
#if WHOLE
    const int count = UNIT;
#else
    const int count = (int)min(p.k - k, (long)UNIT);
#endif
    float16 v[COLS][VECTORS];
    float scale[COLS][SPANS], offset[COLS][SPANS];
    UNROLL for (int j = 0; j < COLS; ++j) {
      UNPACK(w, min(n0 + j, p.n - 1), k, v[j], scale[j], offset[j]);
      if (count < UNIT) cut_unit(v[j], count);
    }
    UNROLL for (int m = 0; m < ROWS; ++m) {
      float16 of_x[VECTORS], x_sums[SPANS];
      load_unit(x + min((long)m, p.m - 1) * p.x_row, k, count, of_x);
#if OFFSETS
      sum_spans(of_x, x_sums);
#endif
      UNROLL for (int j = 0; j < COLS; ++j)
        sum[m * COLS + j] = add_unit(sum[m * COLS + j], v[j], scale[j], offset[j], of_x, x_sums);
    }
  }
  UNROLL for (int i = 0; i < SUMS; ++i) {
    shared[id] = horizontal_sum(sum[i]);
    for (uint far = LANES / 2; far > 0; far /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane < far) shared[id] += shared[id + far];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const long m = i / COLS, n = n0 + i % COLS;
    if (lane == 0 && m < p.m && n < p.n) {
      float t = shared[id];
      if (!isfinite(t)) t = sum_of_values(w, n, x + m * p.x_row);
      STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + n, with_bias(t, bias_base, bias_offset, n, p));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
