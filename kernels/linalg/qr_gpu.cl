// Householder QR of a panel of 32 columns for GPUs: one work-group per matrix, 32 work-items per row. R is
// left on and above the diagonal, the reflectors (whose first element is 1) below. TYPE, PART, GROUP
#include "linalg.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void qr(__global void *a_base, ulong a_offset, __global void *tau_base, ulong tau_offset,
                 const LinalgParams p) {
  __local R partials[GROUP];
  __local T sums[GROUP];
  const long m = get_group_id(0);
  const int id = get_local_id(0), column = id % PANEL, lane = id / PANEL, rows = (int)p.rows;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global T *factors = NUMBERS(tau_base, tau_offset) + m * p.vector_batch + p.first;
  for (int i = 0; i < (int)p.steps; ++i) {
    R mine = 0;
    for (int r = i + 1 + id; r < rows; r += GROUP) mine = larger(mine, largest_part(a[r * p.a_row + i]));
    partials[id] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
      if (id < reach) partials[id] = larger(partials[id], partials[id + reach]);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const R largest = partials[0];
    const T diagonal = a[i * p.a_row + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (largest == 0 && imaginary_part(diagonal) == 0) {  // nothing below the diagonal: no reflection
      if (id == 0) factors[i] = number(0);
      continue;
    }
    mine = 0;
    if (largest != 0)
      for (int r = i + 1 + id; r < rows; r += GROUP) {
        const T scaled = a[r * p.a_row + i] / largest;
        mine += real_product(scaled, scaled);
      }
    partials[id] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
      if (id < reach) partials[id] += partials[id + reach];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const R unit = UNIT_OF(largest_part(diagonal), largest);
    const T alpha = diagonal / unit;
    const R beta = -copysign(hypot(modulus(alpha), largest / unit * sqrt(partials[0])), real_part(alpha));
    const T tau = (number(beta) - alpha) / beta, divisor = alpha - number(beta);
    for (int r = i + 1 + id; r < rows; r += GROUP)
      a[r * p.a_row + i] = quotient(a[r * p.a_row + i] / unit, divisor);
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    T w = number(0);
    for (int r = i + 1 + lane; r < rows; r += GROUP / PANEL)
      w += product(conjugate(a[r * p.a_row + i]), a[r * p.a_row + column]);
    sums[id] = w;
    barrier(CLK_LOCAL_MEM_FENCE);
    w = a[i * p.a_row + column];
    for (int other = 0; other < GROUP / PANEL; ++other) w += sums[other * PANEL + column];
    w = product(conjugate(tau), w);
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    if (column > i) {
      if (lane == 0) a[i * p.a_row + column] -= w;
      for (int r = i + 1 + lane; r < rows; r += GROUP / PANEL)
        a[r * p.a_row + column] -= product(a[r * p.a_row + i], w);
    }
    if (id == 0) {
      a[i * p.a_row + i] = number(beta * unit);
      factors[i] = tau;
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  }
}

// b (the identity before, at most 32 columns) = H0 H1 ... b, one reflector after the other: for matrices of
// one panel.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void make_q(__global const void *a_base, ulong a_offset, __global void *b_base, ulong b_offset,
                     __global const void *tau_base, ulong tau_offset, const LinalgParams p) {
  __local T partials[GROUP];
  const long m = get_group_id(0);
  const int id = get_local_id(0), column = id % PANEL, lane = id / PANEL, rows = (int)p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch;
  __global const T *factors = NUMBERS_CONST(tau_base, tau_offset) + m * p.vector_batch;
  for (int i = (int)p.steps - 1; i >= 0; --i) {
    __global const T *v = a + i * p.a_col;
    T w = number(0);
    for (int r = i + 1 + lane; r < rows; r += GROUP / PANEL)
      w += product(conjugate(v[r * p.a_row]), b[r * p.b_row + column]);
    partials[id] = w;
    barrier(CLK_LOCAL_MEM_FENCE);
    w = b[i * p.b_row + column];
    for (int other = 0; other < GROUP / PANEL; ++other) w += partials[other * PANEL + column];
    w = product(factors[i], w);
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    for (int r = i + lane; r < rows; r += GROUP / PANEL)
      b[r * p.b_row + column] -= r == i ? w : product(v[r * p.a_row], w);
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  }
}
