// The first steps to eigenvalues of general matrices: balancing (Parlett and Reinsch, "Balancing a matrix
// for calculation of eigenvalues and eigenvectors", 1969), and Householder's reduction to Hessenberg form
// (Golub and Van Loan, "Matrix Computations", algorithm 7.4.2). TYPE, PART, GROUP
#include "eig_params.h"
#include "matrix_elements.h"
// Matrices whose largest element is outside of these powers of two are scaled, so that squares are finite.
#define RANGE_f32 40
#define RANGE_f64 400
#define RANGE CAT(RANGE_, REAL)
#define MOST_SWEEPS 20

// The power of two that brings the largest element into the range; NaN if that is not finite.
INLINE R unit_of(R largest) {
  if (!isfinite(largest)) return NAN;
  if (largest == 0 || abs(ilogb(largest)) < RANGE) return 1;
  return ldexp((R)1, clamp(ilogb(largest), -3 * RANGE, 3 * RANGE));
}

// The exponent of the factor by which column i grows and row i shrinks, from their sums; 0 where that would
// reduce their sum by less than 5 %.
INLINE int balance_of(R column, R row, R scale) {
  if (!(column > 0 && row > 0)) return 0;
  const int exponent = (ilogb(row) - ilogb(column)) / 2;
  const R factor = ldexp((R)1, exponent);
  const bool useful = column * factor + row / factor < (R)0.95 * (column + row);
  return useful && abs(ilogb(scale) + exponent) < RANGE ? exponent : 0;
}

// The last row of those [lo, hi] whose elements in the columns [lo, hi] are zero but for the diagonal; -1:
// there is none. With `columns`, the last such column.
INLINE R last_isolated(__global const T *a, long n, long lo, long hi, bool columns) {
  const long own = columns ? 1 : n, other = columns ? n : 1;
  R last = -1;
  FOR_TEAM(i, lo, hi + 1) {
    bool alone = true;
    for (long j = lo; j <= hi && alone; ++j) alone = j == i || largest_part(a[i * own + j * other]) == 0;
    if (alone) last = i;
  }
  return last;
}

// Exchanges n elements that are `step` apart.
INLINE void exchange(__global T *x, __global T *y, long n, long step) {
  FOR_TEAM(i, 0, n) {
    const T held = x[i * step];
    x[i * step] = y[i * step];
    y[i * step] = held;
  }
}

// Moves isolated rows to the end and isolated columns to the beginning, so that what is outside of [lo, hi]
// is a triangle, whose diagonal are eigenvalues: swap[i] is what row and column i were exchanged with.
INLINE void isolate(__global T *a, long n, __global R *swap, long *lo, long *hi, __local R *partials) {
  bool columns = false, done = false;
  while (!done) {
    const R last = TEAM_LARGEST(last_isolated(a, n, *lo, *hi, columns), partials);
    const bool found = last >= 0 && *lo < *hi;
    const long i = (long)last, target = columns ? *lo : *hi;
    if (found && i != target) exchange(a + i * n, a + target * n, n, 1);
    SYNC;
    if (found && i != target) exchange(a + i, a + target, n, n);
    if (found && LANE == 0) swap[target] = last;
    SYNC;
    if (found && columns) ++*lo;
    if (found && !columns) --*hi;
    done = !found && columns;
    columns = columns || !found;
  }
}

// place[i]: where element i of a vector gets when exchanges are undone, the last ones first.
INLINE void find_places(long n, long lo, long hi, __global R *swap, __global R *place) {
  for (long i = 0; i < n; ++i) place[i] = i;
  for (long k = 0; k < n; ++k) {
    const long i = k < lo ? lo - 1 - k : k;
    const long other = i >= lo && i <= hi ? i : (long)swap[i];
    const R held = place[i];
    place[i] = place[other];
    place[other] = held;
  }
  for (long i = 0; i < n; ++i) swap[(long)place[i]] = i;
  for (long i = 0; i < n; ++i) place[i] = swap[i];
}

// Scales the matrix, exchanges rows and columns, then scales them by powers of two. scale [count, 3, n]: the
// powers; the exchanges; where they put elements. number [count, 2]: the unit that the matrix was divided
// by, NaN where an element is not finite, and then the largest element.
TEAM __kernel void balance(__global void *a_base, ulong a_offset, __global void *scale_base,
                           ulong scale_offset, __global void *number_base, ulong number_offset,
                           const EigParams p) {
  PARTIALS(partials)
  const long m = get_group_id(0), n = p.n;
  __global T *a = NUMBERS(a_base, a_offset) + m * n * n;
  __global R *scales = AT(REAL, scale_base, scale_offset) + m * 3 * n;
  __global R *numbers = AT(REAL, number_base, number_offset) + m * 2;
  R largest = 0;
  FOR_TEAM(i, 0, n * n) largest = larger(largest, largest_part(a[i]));
  const R unit = unit_of(TEAM_LARGEST(largest, partials));
  FOR_TEAM(i, 0, n) scales[i] = 1;
  if (unit != 1) FOR_TEAM(i, 0, n * n) a[i] /= unit;
  SYNC;
  long lo = 0, hi = n - 1;
  if (!isnan(unit)) isolate(a, n, scales + n, &lo, &hi, PARTIALS_OF(partials));
  if (LANE == 0) find_places(n, lo, hi, scales + n, scales + 2 * n);
  bool changed = !isnan(unit);
  for (int sweep = 0; sweep < MOST_SWEEPS && changed; ++sweep) {
    changed = false;
    for (long i = lo; i <= hi; ++i) {
      const R scale = scales[i];
      R column = 0, row = 0;
      FOR_TEAM(j, lo, hi + 1) {
        column += part_sum(a[j * n + i]);
        row += part_sum(a[i * n + j]);
      }
      column = TEAM_SUM(column, partials);
      row = TEAM_SUM(row, partials);
      const int exponent = balance_of(column, row, scale);
      if (exponent != 0) {
        const R factor = ldexp((R)1, exponent);
        FOR_TEAM(j, 0, n) {
          if (j == i) {
            scales[i] = scale * factor;
          } else {
            a[j * n + i] *= factor;
            a[i * n + j] /= factor;
          }
        }
        changed = true;
      }
      SYNC;
    }
  }
  largest = 0;
  FOR_TEAM(i, 0, n * n) largest = larger(largest, largest_part(a[i]));
  largest = TEAM_LARGEST(largest, partials);
  if (LANE == 0) {
    numbers[0] = unit;
    numbers[1] = largest;
  }
}

// Rows [first, n) of a, from a column on, times I - tau v v^H from the left; with `turned` times its
// conjugate.
INLINE void reflect_rows(__global T *a, long n, long first, long column, __global const T *v,
                         __global T *sums, R tau, bool turned) {
#if CPU_STYLE
  for (long j = column; j < n; ++j) sums[j] = number(0);
  for (long i = first; i < n; ++i) {
    const T factor = turned ? v[i] : conjugate(v[i]);
    for (long j = column; j < n; ++j) sums[j] += product(factor, a[i * n + j]);
  }
  for (long i = first; i < n; ++i) {
    const T factor = tau * (turned ? conjugate(v[i]) : v[i]);
    for (long j = column; j < n; ++j) a[i * n + j] -= product(factor, sums[j]);
  }
#else
  FOR_TEAM(j, column, n) {
    T sum = number(0);
    for (long i = first; i < n; ++i) sum += product(turned ? v[i] : conjugate(v[i]), a[i * n + j]);
    sum *= tau;
    for (long i = first; i < n; ++i) a[i * n + j] -= product(turned ? conjugate(v[i]) : v[i], sum);
  }
#endif
}

// Columns [first, n) of a times I - tau v v^H from the right.
INLINE void reflect_columns(__global T *a, long n, long first, __global const T *v, R tau) {
  FOR_TEAM(i, 0, n) {
    __global T *row = a + i * n;
    T sum = number(0), more = number(0);
    long j = first;
    for (; j + 1 < n; j += 2) {
      sum += product(row[j], v[j]);
      more += product(row[j + 1], v[j + 1]);
    }
    if (j < n) sum += product(row[j], v[j]);
    sum = (sum + more) * tau;
    for (j = first; j < n; ++j) row[j] -= product(sum, conjugate(v[j]));
  }
}

// a = Q H Q^H in place; q becomes the transpose of Q. work [count, 2, n]
TEAM __kernel void hessenberg(__global void *a_base, ulong a_offset, __global void *q_base, ulong q_offset,
                            __global void *work_base, ulong work_offset, __global const void *number_base,
                            ulong number_offset, const EigParams p) {
  PARTIALS(partials)
  const long m = get_group_id(0), n = p.n;
  __global T *a = NUMBERS(a_base, a_offset) + m * n * n;
  __global T *q = NUMBERS(q_base, q_offset) + (p.vectors ? m * n * n : 0);
  __global T *v = NUMBERS(work_base, work_offset) + m * 2 * n;
  if (isnan(AT_CONST(REAL, number_base, number_offset)[m * 2])) return;
  if (p.vectors) FOR_TEAM(i, 0, n * n) q[i] = number(i / n == i % n ? 1 : 0);
  for (long k = 0; k + 2 < n; ++k) {
    const T alpha = a[(k + 1) * n + k];
    R largest = 0, sum = 0;
    FOR_TEAM(i, k + 2, n) largest = larger(largest, largest_part(a[i * n + k]));
    largest = TEAM_LARGEST(largest, partials);
    const bool needed = largest > LEAST;  // what is less counts as 0 beside the largest element
    if (needed) FOR_TEAM(i, k + 2, n) sum += square(a[i * n + k] / largest);
    sum = TEAM_SUM(sum, partials);
    const R size = modulus(alpha), norm = hypot(size, largest * sqrt(sum));
    const T phase = size > 0 ? alpha / size : number(1);
    const T pivot = phase * (size + norm);
    const R tau = (size + norm) / norm;
    FOR_TEAM(i, k + 2, n) {
      v[i] = needed ? quotient(a[i * n + k], pivot) : number(0);
      a[i * n + k] = number(0);
    }
    if (LANE == 0 && needed) {
      v[k + 1] = number(1);
      a[(k + 1) * n + k] = -norm * phase;
    }
    SYNC;
    if (needed) reflect_rows(a, n, k + 1, k + 1, v, v + n, tau, false);
    SYNC;
    if (needed) reflect_columns(a, n, k + 1, v, tau);
    if (needed && p.vectors) reflect_rows(q, n, k + 1, 0, v, v + n, tau, true);
    SYNC;
  }
}
