// Solves T X = B in place for a lower triangular T of at most 32 rows, for GPUs: a work-item takes one column
// of B, which it holds; T's columns are in local memory. Negative strides of T and between the rows of B make
// this the solve of an upper triangle. CONJUGATE (0 if it is not set): T is the conjugate of a.
// TYPE, PART, UNIT, GROUP
#include "linalg.h"
#include "steps.h"
#ifndef CONJUGATE
#define CONJUGATE 0
#endif

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void solve(__global const void *a_base, ulong a_offset, __global void *b_base, ulong b_offset,
                    const LinalgParams p) {
  __local T t[PANEL][PANEL + 1];
  const long groups = (p.columns + GROUP - 1) / GROUP, m = get_group_id(0) / groups;
  const int id = get_local_id(0), n = (int)p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  for (int e = id; e < PANEL * PANEL; e += GROUP) {
    const int r = e / PANEL, c = e % PANEL;
    const T x = r < n && c <= r ? a[r * p.a_row + c * p.a_col] : number(r == c);
    t[c][r] = CONJUGATE ? conjugate(x) : x;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long column = (get_group_id(0) - m * groups) * GROUP + id;
  if (column >= p.columns) return;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + column;
  T x[PANEL];
  UNROLL for (int r = 0; r < PANEL; ++r) x[r] = r < n ? b[r * p.b_row] : number(0);
#if TURNS  // x[0] is row k, and after all steps row 0 again
  ROLLED for (int k = 0; k < PANEL; ++k) {
    const T solved = UNIT ? x[0] : quotient(x[0], t[k][k]);
    UNROLL for (int r = 0; r < PANEL - 1; ++r)
      x[r] = k + 1 + r < PANEL ? x[r + 1] - product(t[k][(k + 1 + r) % PANEL], solved) : x[r + 1];
    x[PANEL - 1] = solved;
  }
#else
  UNROLL for (int k = 0; k < PANEL; ++k) {
#if !UNIT
    x[k] = quotient(x[k], t[k][k]);
#endif
    UNROLL for (int r = k + 1; r < PANEL; ++r) x[r] -= product(t[k][r], x[k]);
  }
#endif
  UNROLL for (int r = 0; r < PANEL; ++r)
    if (r < n) b[r * p.b_row] = x[r];
}
