// Matrix product of any type and strides for GPUs: 64 work-items compute 4 rows x 256 columns, 4 x 4 each.
// Defines: TYPE, FLOATING, WIDE (accumulator.h); A_TYPE, B_TYPE, RESULT; ADD_SELF (0, 1); epilogue.h's.
#include "accumulator.h"
#include "epilogue.h"

#define TM 4
#define TN 4
#define LANES 64

__attribute__((reqd_work_group_size(LANES, 1, 1)))
__kernel void matmul(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                     __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset,
                     SCALE_PARAMETERS const MatmulParams p) {
  const long n0 = get_group_id(0) * (LANES * TN) + get_local_id(0);  // columns n0 + j * LANES
  const long m0 = get_global_id(1) * TM, z = get_global_id(2);
  __global const STYPE(A_TYPE) *a = AT_CONST(A_TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(B_TYPE) *b = AT_CONST(B_TYPE, b_base, b_offset) + z * p.b_batch;
  __global STYPE(RESULT) *c = AT(RESULT, c_base, c_offset) + z * p.c_batch;
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS z, p);
  acc_t sum[TM][TN];
  long row[TM], column[TN];
  UNROLL for (int i = 0; i < TM; ++i) row[i] = min(m0 + i, p.m - 1) * p.a_row;
  UNROLL for (int j = 0; j < TN; ++j) column[j] = min(n0 + j * LANES, p.n - 1) * p.b_col;
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) sum[i][j] = 0;
  for (long k = 0; k < p.k; ++k) {
    acc_t u[TM], v[TN];
    UNROLL for (int i = 0; i < TM; ++i) u[i] = ACC(LOAD(A_TYPE, a, row[i] + k * p.a_col));
    UNROLL for (int j = 0; j < TN; ++j) v[j] = ACC(LOAD(B_TYPE, b, column[j] + k * p.b_row));
    UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j)
      sum[i][j] = MULTIPLY_ADD(u[i], v[j], sum[i][j]);
  }
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) {
    const long m = m0 + i, n = n0 + j * LANES;
    if (m >= p.m || n >= p.n) continue;
    STORE(RESULT, c, m * p.c_row + n * p.c_col, TO(RESULT, ended(sum[i][j], m, n, end)));
  }
}
