// Matrix product of any type and strides for CPU drivers: a work-item computes 8 rows x 16 columns in
// registers.
// Defines: TYPE, FLOATING, WIDE (accumulator.h); A_TYPE, B_TYPE, RESULT; ADD_SELF (0, 1); epilogue.h's.
#include "accumulator.h"
#include "epilogue.h"

#define TM 8

// 16 columns of a row of b; those from `left` on repeat the last one, and their results are not stored.
INLINE acc16_t load_columns(__global const STYPE(B_TYPE) *b, long stride, long left) {
  if (stride == 1 && left >= 16) return ACC16(LOAD16(B_TYPE, b, 0));
  CTYPE(B_TYPE) lane[16];
  for (long j = 0; j < 16; ++j) lane[j] = LOAD(B_TYPE, b, min(j, left - 1) * stride);
  return ACC16(vload16(0, lane));
}

ONE_ITEM __kernel void matmul(__global void *c_base, ulong c_offset, __global const void *a_base,
                              ulong a_offset, __global const void *b_base, ulong b_offset,
                              __global const void *s_base, ulong s_offset,
                              __global const void *scales_base, ulong scales_offset,
                              const MatmulParams p) {
  const long n0 = get_global_id(0) * 16, m0 = get_global_id(1) * TM, z = get_global_id(2);
  const long left = p.n - n0;
  __global const STYPE(A_TYPE) *a = AT_CONST(A_TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(B_TYPE) *b = AT_CONST(B_TYPE, b_base, b_offset) + z * p.b_batch + n0 * p.b_col;
  __global STYPE(RESULT) *c = AT(RESULT, c_base, c_offset) + z * p.c_batch;
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS z, p);
  acc16_t sum[TM];
  UNROLL for (int i = 0; i < TM; ++i) sum[i] = (acc16_t)(0);
  long row[TM];
  UNROLL for (int i = 0; i < TM; ++i) row[i] = min(m0 + i, p.m - 1) * p.a_row;
  for (long k = 0; k < p.k; ++k) {
    const acc16_t v = load_columns(b + k * p.b_row, p.b_col, left);
    UNROLL for (int i = 0; i < TM; ++i)
      sum[i] = MULTIPLY_ADD((acc16_t)(ACC(LOAD(A_TYPE, a, row[i] + k * p.a_col))), v, sum[i]);
  }
  for (int i = 0; i < TM; ++i) {
    const long m = m0 + i;
    if (m >= p.m) break;
    acc_t lane[16];
    vstore16(sum[i], 0, lane);
    for (long n = n0; n < n0 + min(left, 16L); ++n)
      STORE(RESULT, c, m * p.c_row + n * p.c_col, TO(RESULT, ended(lane[n - n0], m, n, end)));
  }
}
