// Solves T X = B in place for a lower triangular T of at most 32 rows, for GPUs: a work-item takes one column
// of B; T is in local memory. Negative strides of T and between the rows of B make this the solve of an upper
// triangle. CONJUGATE: T is the conjugate of a. TYPE, PART, UNIT, CONJUGATE, GROUP
#include "linalg.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void solve(__global const void *a_base, ulong a_offset, __global void *b_base, ulong b_offset,
                    const LinalgParams p) {
  __local T t[PANEL * PANEL];
  const long groups = (p.columns + GROUP - 1) / GROUP, m = get_group_id(0) / groups;
  const int id = get_local_id(0), n = (int)p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  for (int e = id; e < n * n; e += GROUP) {
    const T x = e / n >= e % n ? a[e / n * p.a_row + e % n * p.a_col] : number(0);
    t[e] = CONJUGATE ? conjugate(x) : x;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long column = (get_group_id(0) - m * groups) * GROUP + id;
  if (column >= p.columns) return;
  __global T *x = NUMBERS(b_base, b_offset) + m * p.b_batch + column;
  for (int i = 0; i < n; ++i) {
    T sum = x[i * p.b_row];
    for (int j = 0; j < i; ++j) sum -= product(t[i * n + j], x[j * p.b_row]);
#if !UNIT
    sum = quotient(sum, t[i * n + i]);
#endif
    x[i * p.b_row] = sum;
  }
}
