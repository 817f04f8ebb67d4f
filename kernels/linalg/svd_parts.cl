// Parts of singular value decompositions: sizes of columns, their order, columns in that order, signs. TYPE,
// PART, CPU_STYLE
#include "matrix_rows.h"
#include "svd.h"

// The largest part of an element and the length of each column of a; NaN for a column with a NaN.
GROUP __kernel void measure(__global const void *a_base, ulong a_offset, __global void *largest_base,
                            ulong largest_offset, __global void *length_base, ulong length_offset,
                            const LinalgParams p) {
  const long m = ROW / p.columns, c = ROW - m * p.columns;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch + c * p.a_col;
  R largest = 0, sum = 0;
  for (long r = LANE; r < p.rows; r += SHARERS) largest = larger(largest, largest_part(a[r * p.a_row]));
#if !CPU_STYLE
  __local R partials[PANEL];
  partials[LANE] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < PANEL; ++i) largest = larger(largest, partials[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  const R unit = largest == 0 ? 1 : largest;
  for (long r = LANE; r < p.rows; r += SHARERS) {
    const T x = a[r * p.a_row] / unit;
    sum += real_product(x, x);
  }
#if !CPU_STYLE
  partials[LANE] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = PANEL / 2; reach > 0; reach /= 2) {
    if (LANE < reach) partials[LANE] += partials[LANE + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = partials[0];
  if (LANE > 0) return;
#endif
  AT(REAL, largest_base, largest_offset)[ROW] = largest;
  AT(REAL, length_base, length_offset)[ROW] = largest * sqrt(sum);
}

// The places of columns in descending order of their largest elements, and for each matrix the power of two
// that scales its largest element to between 1 and 2; NaN if an element is not finite. A work-item takes a
// column.
__kernel void sort_columns(__global const void *size_base, ulong size_offset, __global void *place_base,
                           ulong place_offset, __global void *scale_base, ulong scale_offset,
                           const LinalgParams p) {
  const long i = get_global_id(0), m = i / p.columns;
  if (m >= p.count) return;
  __global const R *sizes = AT_CONST(REAL, size_base, size_offset) + m * p.columns;
  AT(i32, place_base, place_offset)[i] = place_of(sizes, p.columns, i - m * p.columns, false);
  R largest = 0;
  for (long c = 0; c < p.columns; ++c) largest = larger(largest, sizes[c]);
  AT(REAL, scale_base, scale_offset)[i] = scale_of(largest);
}

// The singular values are the lengths of the columns in order, times the scale; NaN if the last sweep still
// rotated columns.
__kernel void sort_values(__global const void *size_base, ulong size_offset, __global void *place_base,
                          ulong place_offset, __global const void *scale_base, ulong scale_offset,
                          __global const void *state_base, ulong state_offset, __global void *value_base,
                          ulong value_offset, const LinalgParams p) {
  const long i = get_global_id(0), m = i / p.columns;
  if (m >= p.count) return;
  __global const R *sizes = AT_CONST(REAL, size_base, size_offset) + m * p.columns;
  const int place = place_of(sizes, p.columns, i - m * p.columns, false);
  const bool failed = AT_CONST(i32, state_base, state_offset)[m * SWEEPS + SWEEPS - 1];
  const R value = sizes[i - m * p.columns] * AT_CONST(REAL, scale_base, scale_offset)[i];
  AT(i32, place_base, place_offset)[i] = place;
  AT(REAL, value_base, value_offset)[m * p.columns + place] = failed ? (R)NAN : value;
}

// Column places[c] of b = column c of a, divided by divisors[c] (0 counts as 1) and conjugated if asked for;
// or the inverse (back): column c of b = column places[c] of a.
GROUP __kernel void arrange(__global const void *a_base, ulong a_offset, __global void *b_base,
                            ulong b_offset, __global const void *place_base, ulong place_offset,
                            __global const void *divisor_base, ulong divisor_offset, int back,
                            int conjugated, const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch + r * p.a_row;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  __global const int *places = AT_CONST(i32, place_base, place_offset) + m * p.columns;
  __global const R *divisors = AT_CONST(REAL, divisor_base, divisor_offset) + m * p.columns;
  for (long c = LANE; c < p.columns; c += SHARERS) {
    if (back) {
      b[c * p.b_col] = a[places[c] * p.a_col];
    } else {
      const R divisor = divisors[c];
      const T x = a[c * p.a_col] / (divisor == 0 ? (R)1 : divisor);
      b[places[c] * p.b_col] = conjugated ? conjugate(x) : x;
    }
  }
}

// Changes the signs of the columns of b for which a's diagonal element, a real number, is negative.
GROUP __kernel void change_signs(__global const void *a_base, ulong a_offset, __global void *b_base,
                                 ulong b_offset, const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  for (long c = LANE; c < p.columns; c += SHARERS)
    if (real_part(a[c * (p.a_row + p.a_col)]) < 0) b[c * p.b_col] = -b[c * p.b_col];
}
