// Parts of factored matrices: triangles, reflectors, the factor of a block of reflectors, permutations. TYPE,
// PART, CPU_STYLE
#include "matrix_rows.h"

// b = the upper triangle of a, or the lower one with ones on the diagonal (unit), and zeros. b may be a.
GROUP __kernel void triangle(__global const void *a_base, ulong a_offset, __global void *b_base,
                             ulong b_offset, int unit, const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch + r * p.a_row;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  for (long c = LANE; c < p.columns; c += SHARERS) {
    const bool keep = unit ? c < r : c >= r;
    const T x = keep ? a[c * p.a_col] : number(unit && c == r);
    b[c * p.b_col] = x;
  }
}

// b = the reflectors below the diagonal of a, with their ones; zeros above, and in columns from `steps` on.
GROUP __kernel void reflectors(__global const void *a_base, ulong a_offset, __global void *b_base,
                               ulong b_offset, const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch + r * p.a_row;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  for (long c = LANE; c < PANEL; c += SHARERS)
    b[c] = c < p.steps && c < r ? a[c * p.a_col] : number(c < p.steps && c == r);
}

// The product of reflectors H0 H1 ... is I - V F V^H with an upper triangular F (b), computed from the
// products V^H V (a) and the factors tau. The rows of F are independent of each other: a work-item takes a
// row.
GROUP __kernel void block_factor(__global const void *a_base, ulong a_offset, __global void *b_base,
                                 ulong b_offset, __global const void *tau_base, ulong tau_offset,
                                 const LinalgParams p) {
  const long m = get_global_id(0) / PANEL, r = get_global_id(0) - m * PANEL;
  __global const T *from = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  __global T *to = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  __global const T *tau = NUMBERS_CONST(tau_base, tau_offset) + m * p.vector_batch + p.first;
#if CPU_STYLE
#define PRODUCT(q, i) from[(q) * p.a_row + (i)]
#define FACTOR(i) to[i]
#else
  // Above the diagonal the products, from it on, turned, F: two blocks of double2 would be over 32 KiB.
  __local T held[PANEL][PANEL + 1];
  for (int q = 0; q < PANEL; ++q) held[q][LANE] = from[q * p.a_row + LANE];
  barrier(CLK_LOCAL_MEM_FENCE);
#define PRODUCT(q, i) held[q][i]
#define FACTOR(i) held[i][LANE]
#endif
  for (long i = 0; i < r; ++i) to[i] = number(0);
  for (long i = r; i < PANEL; ++i) {
    T x = number(0);
    if (i < p.steps) {
      if (i == r) {
        x = tau[i];
      } else {
        for (long q = r; q < i; ++q) x -= product(FACTOR(q), PRODUCT(q, i));
        x = product(tau[i], x);
      }
    }
    FACTOR(i) = x;
  }
#if !CPU_STYLE
  for (long i = r; i < PANEL; ++i) to[i] = FACTOR(i);
#endif
}

// Writes the ones of the permutation matrices b (zero before) that undo the row interchanges `pivots`.
// `order` has room for the order of each matrix's rows.
ONE_ITEM __kernel void permutation(__global void *order_base, ulong order_offset, __global void *b_base,
                                   ulong b_offset, __global const void *pivot_base, ulong pivot_offset,
                                   const LinalgParams p) {
  const long m = get_global_id(0);
  __global int *order = AT(i32, order_base, order_offset) + m * p.rows;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch;
  __global const int *pivots = AT_CONST(i32, pivot_base, pivot_offset) + m * p.vector_batch;
  for (long i = 0; i < p.rows; ++i) order[i] = (int)i;
  for (long i = 0; i < p.steps; ++i) {
    const int other = pivots[i] - 1, held = order[i];
    order[i] = order[other];
    order[other] = held;
  }
  for (long i = 0; i < p.rows; ++i) b[order[i] * p.b_row + i * p.b_col] = number(1);
}
