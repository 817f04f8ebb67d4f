// Eigenvalues of real symmetric tridiagonal matrices by divide and conquer (Cuppen, "A divide and conquer
// method for the symmetric tridiagonal eigenproblem", 1981): the leaves, and merges of two neighbouring
// blocks' solutions, D + rho z z^T, with deflation as in LAPACK's slaed2. A merge has p.columns values, of
// which it keeps `kept` in the problem; the others are eigenvalues already. GPUs. TYPE, GROUP
#include "linalg.h"
#define GROUPED __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define EPSILON CAT(EPSILON_, REAL)

INLINE R group_largest(R own, __local R *partials) {
  const int id = get_local_id(0);
  partials[id] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (id < reach) partials[id] = larger(partials[id], partials[id + reach]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const R largest = partials[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return largest;
}

// a [count * leaves, leaf, leaf] = the diagonal blocks of the tridiagonal matrices diagonal, beside [count,
// rows], from which the elements between blocks are taken: rho (u u^T), where u is 1 and the sign of the
// element. Rows that fill the last blocks have an eigenvalue beyond all others. p.columns: rows of a leaf;
// p.steps: leaves.
GROUPED __kernel void leaves(__global const void *diagonal_base, ulong diagonal_offset,
                             __global const void *beside_base, ulong beside_offset, __global void *a_base,
                             ulong a_offset, const LinalgParams p) {
  __local R partials[GROUP];
  const long m = get_group_id(0), n = p.rows, leaf = p.columns;
  __global const R *d = AT_CONST(REAL, diagonal_base, diagonal_offset) + m * n;
  __global const R *e = AT_CONST(REAL, beside_base, beside_offset) + m * n;
  __global R *a = AT(REAL, a_base, a_offset) + m * p.steps * leaf * leaf;
  R bound = 0;
  for (long i = get_local_id(0); i < n; i += GROUP)
    bound = larger(bound, fabs(d[i]) + (i > 0 ? fabs(e[i - 1]) : 0) + (i + 1 < n ? fabs(e[i]) : 0));
  bound = group_largest(bound, partials);
  const R beyond = bound > 0 ? bound * (R)1.0625 : (R)1;
  for (long k = get_local_id(0); k < p.steps * leaf * leaf; k += GROUP) {
    const long block = k / (leaf * leaf), r = k / leaf % leaf, c = k % leaf;
    const long row = block * leaf + r, column = block * leaf + c, least = min(row, column);
    R x = 0;
    if (r == c) {
      x = row < n ? d[row] : beyond;
      if (r == 0 && row > 0 && row < n) x -= fabs(e[row - 1]);
      if (r == leaf - 1 && row + 1 < n) x -= fabs(e[row]);
    } else if ((r - c == 1 || c - r == 1) && max(row, column) < n) {
      x = e[least];
    }
    a[k] = x;
  }
}

INLINE bool before(R a, R b) { return a < b || (isnan(b) && !isnan(a)); }
// How many of `count` sorted values come before x, or, with `equal`, not after it.
INLINE long count_before(__global const R *values, long count, R x, bool equal) {
  long low = 0, high = count;
  while (low < high) {
    const long middle = (low + high) / 2;
    if (equal ? !before(x, values[middle]) : before(values[middle], x))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The merge's problem: kept [merges, 2]: how many values it keeps, and how many rotations it has; pole,
// weight [merges, p.columns]: D and z of those, ascending; place: the columns of the blocks' vectors that
// they and, behind them, the deflated values belong to; value: the latter; rho [merges]; givens: the
// rotations of columns by which equal values were deflated: cosine, sine, both columns. values: of the two
// blocks; a: their vectors.
GROUPED __kernel void deflate(__global const void *value_base, ulong value_offset,
                              __global const void *a_base, ulong a_offset, __global const void *beside_base,
                              ulong beside_offset, __global void *kept_base, ulong kept_offset,
                              __global void *rho_base, ulong rho_offset, __global void *pole_base,
                              ulong pole_offset, __global void *weight_base, ulong weight_offset,
                              __global void *place_base, ulong place_offset, __global void *result_base,
                              ulong result_offset, __global void *givens_base, ulong givens_offset,
                              __global void *work_base, ulong work_offset, const LinalgParams p) {
  __local R partials[GROUP];
  const long g = get_group_id(0), size = p.columns, middle = size / 2, merges = p.steps, m = g / merges;
  const long boundary = (g - m * merges) * size + middle;  // the first row of the second block
  const int id = get_local_id(0);
  __global const R *values = AT_CONST(REAL, value_base, value_offset) + g * size;
  __global const R *q = AT_CONST(REAL, a_base, a_offset) + g * size * middle;
  __global R *d = AT(REAL, work_base, work_offset) + g * 2 * size, *z = d + size;
  __global int *places = AT(i32, place_base, place_offset) + g * 2 * size, *columns = places + size;
  __global R *poles = AT(REAL, pole_base, pole_offset) + g * size;
  __global R *weights = AT(REAL, weight_base, weight_offset) + g * size;
  __global R *results = AT(REAL, result_base, result_offset) + g * size;
  __global R *givens = AT(REAL, givens_base, givens_offset) + g * size * 4;
  __global const R *beside = AT_CONST(REAL, beside_base, beside_offset) + m * p.rows;
  const R between = boundary < p.rows ? beside[boundary - 1] : 0;
  const R rho = 2 * fabs(between);
  R most_d = 0, most_z = 0;
  for (long i = id; i < size; i += GROUP) {
    const R own = values[i];
    const bool second = i >= middle;
    const long to = second ? i - middle + count_before(values, middle, own, true)
                           : i + count_before(values + middle, middle, own, false);
    const R part = second ? q[middle * middle + i - middle] : q[(middle - 1) * middle + i];
    const R weight = (second && between < 0 ? -part : part) * sqrt((R)0.5);
    d[to] = own;
    z[to] = weight;
    columns[to] = (int)i;
    most_d = larger(most_d, fabs(own));
    most_z = larger(most_z, fabs(weight));
  }
  most_d = group_largest(most_d, partials);
  most_z = group_largest(most_z, partials);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (id > 0) return;
  const R tolerance = 4 * EPSILON * fmax(most_d, most_z);
  int kept = 0, turned = 0, end = (int)size, pending = -1;
  for (int i = 0; i < (int)size; ++i) {
    if (rho * fabs(z[i]) <= tolerance) {
      --end;
      results[end] = d[i];
      places[end] = columns[i];
      continue;
    }
    if (pending >= 0) {
      const R zp = z[pending], zi = z[i], gap = d[i] - d[pending], square = zp * zp + zi * zi;
      if (fabs(gap * zp * zi) <= tolerance * square) {
        const R length = sqrt(square), cosine = zi / length, sine = -zp / length;
        const R dp = d[pending], di = d[i];
        __global R *turn = givens + 4 * turned++;
        turn[0] = cosine;
        turn[1] = sine;
        turn[2] = columns[pending];
        turn[3] = columns[i];
        z[i] = length;
        d[i] = dp * sine * sine + di * cosine * cosine;
        --end;
        results[end] = dp * cosine * cosine + di * sine * sine;
        places[end] = columns[pending];
      } else {
        poles[kept] = d[pending];
        weights[kept] = zp;
        places[kept++] = columns[pending];
      }
    }
    pending = i;
  }
  if (pending >= 0) {
    poles[kept] = d[pending];
    weights[kept] = z[pending];
    places[kept++] = columns[pending];
  }
  AT(i32, kept_base, kept_offset)[2 * g] = kept;
  AT(i32, kept_base, kept_offset)[2 * g + 1] = turned;
  AT(REAL, rho_base, rho_offset)[g] = rho;
}
