// Products of at most 4 rows with a B whose rows are neighbours (a weight N x K), for GPUs: 64 work-items share a column,
// neighbours along k, and sum in a fixed order. Defines: TYPE, FLOATING, WIDE (accumulator.h), HAS_S.
#include "accumulator.h"
#include "matmul_params.h"

#define ROWS 4
#define LANES 64

__attribute__((reqd_work_group_size(LANES, 1, 1)))
__kernel void matmul_dots(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                          __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset,
                          const MatmulParams p) {
  __local acc_t part[ROWS][LANES];
  const long n = get_group_id(0), z = get_group_id(1);
  const int lane = get_local_id(0);
  __global const STYPE(TYPE) *a = AT_CONST(TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(TYPE) *b = AT_CONST(TYPE, b_base, b_offset) + z * p.b_batch + n * p.b_col;
  acc_t sum[ROWS];
  UNROLL for (int m = 0; m < ROWS; ++m) sum[m] = 0;
  for (long k = lane; k < p.k; k += LANES) {
    const acc_t v = ACC(LOAD(TYPE, b, k));
    UNROLL for (int m = 0; m < ROWS; ++m)
      sum[m] = MULTIPLY_ADD(ACC(LOAD(TYPE, a, min((long)m, p.m - 1) * p.a_row + k)), v, sum[m]);
  }
  UNROLL for (int m = 0; m < ROWS; ++m) part[m][lane] = sum[m];
  for (int step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) UNROLL for (int m = 0; m < ROWS; ++m) part[m][lane] += part[m][lane + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long m = lane;
  if (m >= min((long)ROWS, (long)p.m)) return;
  acc_t v = part[m][0] * ACC(FROM_BITS(TYPE, p.alpha));
#if HAS_S
  v += ACC(FROM_BITS(TYPE, p.beta)) *
       ACC(LOAD(TYPE, AT_CONST(TYPE, s_base, s_offset), z * p.s_batch + m * p.s_row + n * p.s_col));
#endif
  STORE(TYPE, AT(TYPE, c_base, c_offset), z * p.c_batch + m * p.c_row + n * p.c_col, TO(TYPE, v));
}
