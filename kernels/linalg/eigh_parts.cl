// Parts of the eigenvalues of symmetric and Hermitian matrices by Jacobi rotations: both triangles from one,
// scaling, a shift that makes all eigenvalues positive, eigenvalues from rotated rows, their order. TYPE,
// PART, CPU_STYLE
#include "matrix_rows.h"
#include "svd.h"

// b = the Hermitian matrix of which a has the lower or the upper triangle; the other one is not read, nor are
// imaginary parts of the diagonal.
GROUP __kernel void symmetric(__global const void *a_base, ulong a_offset, __global void *b_base,
                              ulong b_offset, int upper, const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  for (long c = LANE; c < p.columns; c += SHARERS) {
    const bool own = upper ? c >= r : c <= r;
    const T x = own ? a[r * p.a_row + c * p.a_col] : conjugate(a[c * p.a_row + r * p.a_col]);
    b[c] = c == r ? number(real_part(x)) : x;
  }
}

// Divides a by the power of two, scale [count, rows], that brings its largest element to between 1 and 2. NaN
// if an element is not finite. `largest` [count, rows] are those of the columns.
GROUP __kernel void normalise(__global void *a_base, ulong a_offset, __global const void *largest_base,
                              ulong largest_offset, __global void *scale_base, ulong scale_offset,
                              const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch + r * p.a_row;
  __global const R *sizes = AT_CONST(REAL, largest_base, largest_offset) + m * p.rows;
  R largest = 0;
  for (long c = 0; c < p.rows; ++c) largest = larger(largest, sizes[c]);
  const R scale = scale_of(largest);
  for (long c = LANE; c < p.columns; c += SHARERS) a[c] /= scale;
  if (LANE == 0) AT(REAL, scale_base, scale_offset)[ROW] = scale;
}

// b = a + c I with c = 3 / 2 of a bound of a's eigenvalues: the root of the order `power` of the Frobenius
// norm of a to that power, whose columns have the given lengths. Eigenvalues of b are between c / 3 and
// 5 c / 3.
GROUP __kernel void shift(__global const void *a_base, ulong a_offset, __global void *b_base, ulong b_offset,
                          __global const void *length_base, ulong length_offset, int power,
                          const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch + r * p.a_row;
  __global T *b = NUMBERS(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  __global const R *lengths = AT_CONST(REAL, length_base, length_offset) + m * p.rows;
  R longest = 0, sum = 0;
  for (long c = 0; c < p.rows; ++c) longest = fmax(longest, lengths[c]);
  for (long c = 0; c < p.rows && longest > 0; ++c) sum += (lengths[c] / longest) * (lengths[c] / longest);
  R bound = longest * sqrt(sum);
  for (int i = 1; i < power; i *= 2) bound = sqrt(bound);
  const R c_shift = bound == 0 ? (R)1 : (R)1.5 * bound;
  for (long c = LANE; c < p.columns; c += SHARERS) b[c] = a[c] + number(c == r ? c_shift : (R)0);
}

// The Rayleigh quotient of each row v of a, v A v^H / |v|^2, from the products b = a A.
GROUP __kernel void quotients(__global const void *a_base, ulong a_offset, __global const void *b_base,
                              ulong b_offset, __global void *value_base, ulong value_offset,
                              const LinalgParams p) {
  const long m = ROW / p.rows, r = ROW - m * p.rows;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch + r * p.a_row;
  __global const T *b = NUMBERS_CONST(b_base, b_offset) + m * p.b_batch + r * p.b_row;
  R along = 0, square = 0;
  for (long c = LANE; c < p.columns; c += SHARERS) {
    along += real_product(a[c], b[c]);
    square += real_product(a[c], a[c]);
  }
#if !CPU_STYLE
  __local R products[PANEL], squares[PANEL];
  products[LANE] = along;
  squares[LANE] = square;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = PANEL / 2; reach > 0; reach /= 2) {
    if (LANE < reach) {
      products[LANE] += products[LANE + reach];
      squares[LANE] += squares[LANE + reach];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  along = products[0];
  square = squares[0];
  if (LANE > 0) return;
#endif
  AT(REAL, value_base, value_offset)[ROW] = along / square;
}

// The places of numbers in ascending order, and the eigenvalues there: the numbers times the scale. NaN if
// the last sweep still rotated rows. A work-item takes a number.
__kernel void ascend(__global const void *number_base, ulong number_offset, __global void *place_base,
                     ulong place_offset, __global const void *scale_base, ulong scale_offset,
                     __global const void *state_base, ulong state_offset, __global void *value_base,
                     ulong value_offset, const LinalgParams p) {
  const long i = get_global_id(0), m = i / p.rows;
  if (m >= p.count) return;
  __global const R *numbers = AT_CONST(REAL, number_base, number_offset) + m * p.rows;
  const int place = place_of(numbers, p.rows, i - m * p.rows, true);
  const bool failed = AT_CONST(i32, state_base, state_offset)[m * SWEEPS + SWEEPS - 1];
  const R value = numbers[i - m * p.rows] * AT_CONST(REAL, scale_base, scale_offset)[i];
  AT(i32, place_base, place_offset)[i] = place;
  AT(REAL, value_base, value_offset)[m * p.rows + place] = failed ? (R)NAN : value;
}

// result [count, columns] = values times scale [count, rows] of the matrix; NaN where that is.
__kernel void scale_values(__global const void *value_base, ulong value_offset,
                           __global const void *scale_base, ulong scale_offset, __global void *result_base,
                           ulong result_offset, const LinalgParams p) {
  const long k = get_global_id(0), m = k / p.rows;
  if (m >= p.count) return;
  AT(REAL, result_base, result_offset)[k] =
      AT_CONST(REAL, value_base, value_offset)[m * p.columns + k - m * p.rows] *
      AT_CONST(REAL, scale_base, scale_offset)[k];
}
