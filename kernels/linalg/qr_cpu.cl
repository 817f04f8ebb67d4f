// Householder QR of a panel of 32 columns for CPU drivers: one work-item per matrix. R is left on and above
// the diagonal, the reflectors (whose first element is 1) below. TYPE, MASK
#include "linalg.h"
// The number of rows in a partial sum: without partial sums, rounding errors of long columns would add up.
#define RUN 32
#define FOR_RUNS(start, first, rows) for (long start = first; start < (rows); start += RUN)
#define FOR_RUN(r, start, rows) for (long r = start; r < min(start + RUN, (long)(rows)); ++r)

ONE_ITEM __kernel void qr(__global void *a_base, ulong a_offset, __global void *tau_base, ulong tau_offset,
                          const LinalgParams p) {
  const long m = get_global_id(0);
  __global STYPE(TYPE) *a = AT(TYPE, a_base, a_offset) + m * p.a_batch;
  __global STYPE(TYPE) *factors = AT(TYPE, tau_base, tau_offset) + m * p.vector_batch + p.first;
  for (long i = 0; i < p.steps; ++i) {
    __global STYPE(TYPE) *row = a + i * p.a_row;
    T largest = 0, sum = 0;
    for (long r = i + 1; r < p.rows; ++r) {
      const T size = fabs(a[r * p.a_row + i]);
      largest = size > largest || isnan(size) ? size : largest;
    }
    if (largest != 0)
      FOR_RUNS(start, i + 1, p.rows) {
        T of_run = 0;
        FOR_RUN(r, start, p.rows) {
          const T scaled = a[r * p.a_row + i] / largest;
          of_run += scaled * scaled;
        }
        sum += of_run;
      }
    if (largest == 0) {  // nothing below the diagonal: no reflection
      factors[i] = 0;
      continue;
    }
    const T unit = UNIT_OF(row[i], largest);
    const T alpha = row[i] / unit, beta = -copysign(hypot(alpha, largest / unit * sqrt(sum)), alpha);
    const T tau = (beta - alpha) / beta, divisor = alpha - beta;
    factors[i] = tau;
    const M16 right0 = RIGHT_OF(i, 0), right1 = RIGHT_OF(i, 1);
    const T16 row0 = LOAD16(TYPE, row, 0), row1 = LOAD16(TYPE, row, 16);
    T16 w0 = row0, w1 = row1;
    FOR_RUNS(start, i + 1, p.rows) {
      T16 run0 = 0, run1 = 0;
      FOR_RUN(r, start, p.rows) {
        __global STYPE(TYPE) *at = a + r * p.a_row;
        const T v = at[i] / unit / divisor;
        at[i] = v;
        if (i < 15) run0 += v * LOAD16(TYPE, at, 0);
        run1 += v * LOAD16(TYPE, at, 16);
      }
      w0 += run0;
      w1 += run1;
    }
    w0 *= tau;
    w1 *= tau;
    STORE16(TYPE, row, 0, select(row0, row0 - w0, right0));
    STORE16(TYPE, row, 16, select(row1, row1 - w1, right1));
    row[i] = beta * unit;
    for (long r = i + 1; r < p.rows; ++r) {
      __global STYPE(TYPE) *at = a + r * p.a_row;
      const T v = at[i];
      if (i < 15) {
        const T16 x = LOAD16(TYPE, at, 0);
        STORE16(TYPE, at, 0, select(x, x - v * w0, right0));
      }
      const T16 y = LOAD16(TYPE, at, 16);
      STORE16(TYPE, at, 16, select(y, y - v * w1, right1));
    }
  }
}

// b (the identity before, at most 32 columns) = H0 H1 ... b, one reflector after the other: for matrices of
// one panel.
ONE_ITEM __kernel void make_q(__global const void *a_base, ulong a_offset, __global void *b_base,
                              ulong b_offset, __global const void *tau_base, ulong tau_offset,
                              const LinalgParams p) {
  const long m = get_global_id(0);
  __global const STYPE(TYPE) *a = AT_CONST(TYPE, a_base, a_offset) + m * p.a_batch;
  __global STYPE(TYPE) *b = AT(TYPE, b_base, b_offset) + m * p.b_batch;
  __global const STYPE(TYPE) *factors = AT_CONST(TYPE, tau_base, tau_offset) + m * p.vector_batch;
  for (long i = p.steps - 1; i >= 0; --i) {
    __global const STYPE(TYPE) *v = a + i * p.a_col;
    T16 w0 = LOAD16(TYPE, b, i * p.b_row), w1 = LOAD16(TYPE, b, i * p.b_row + 16);
    FOR_RUNS(start, i + 1, p.rows) {
      T16 run0 = 0, run1 = 0;
      FOR_RUN(r, start, p.rows) {
        run0 += v[r * p.a_row] * LOAD16(TYPE, b, r * p.b_row);
        run1 += v[r * p.a_row] * LOAD16(TYPE, b, r * p.b_row + 16);
      }
      w0 += run0;
      w1 += run1;
    }
    w0 *= factors[i];
    w1 *= factors[i];
    for (long r = i; r < p.rows; ++r) {
      const T x = r == i ? (T)1 : v[r * p.a_row];
      STORE16(TYPE, b, r * p.b_row, LOAD16(TYPE, b, r * p.b_row) - x * w0);
      STORE16(TYPE, b, r * p.b_row + 16, LOAD16(TYPE, b, r * p.b_row + 16) - x * w1);
    }
  }
}
