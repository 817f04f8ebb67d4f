// The secular equation of a merge, 1 / rho + sum z_i^2 / (d_i - x) = 0, and the eigenvectors of D + rho z
// z^T, for GPUs. Each root is known by its distance mu from the nearer pole, so that differences to all poles
// are accurate, and the vectors are those of the z for which these roots are exact, which makes them
// orthogonal (Gu and Eisenstat, "A divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem",
// 1995). p.columns: values of a merge, of which `kept` are in its problem. TYPE
#include "linalg.h"
#include "svd.h"
#define TEAM 32
#define TEAM_OF_32 __attribute__((reqd_work_group_size(TEAM, 1, 1)))
#define EPSILON CAT(EPSILON_, REAL)
#define VECTOR_f32 float4
#define VECTOR_f64 double4
typedef CAT(VECTOR_, REAL) R4;
#define STEPS 60

INLINE R4 team_sum(R4 own, __local R4 *partials) {
  partials[get_local_id(0)] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  R4 sum = partials[0];
  for (int i = 1; i < TEAM; ++i) sum += partials[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

// At x = origin + mu: the sum of z^2 / (d - x) over the poles up to `last`, that of its derivative, and both
// for the poles after it.
INLINE R4 sums_at(__global const R *poles, __global const R *weights, int kept, int last, R origin, R mu,
                  __local R4 *partials) {
  R4 own = 0;
  for (int i = get_local_id(0); i < kept; i += TEAM) {
    const R part = weights[i] / ((poles[i] - origin) - mu), term = weights[i] * part, slope = part * part;
    own += i <= last ? (R4)(term, slope, 0, 0) : (R4)(0, 0, term, slope);
  }
  return team_sum(own, partials);
}

// The step from mu to the root of c + s1 / (first - mu') + s2 / (second - mu'), which has the function's
// value w and the derivatives of both sums (Li, "Solving secular equations stably and efficiently", 1994):
// `first` and `second` are the distances of the poles on both sides.
INLINE R step_between(R w, R first, R second, R slope_first, R slope_second) {
  const R c = w - first * slope_first - second * slope_second;
  const R a = (first + second) * w - first * second * (slope_first + slope_second), b = first * second * w;
  const R root = sqrt(fmax(a * a - 4 * b * c, (R)0));
  return a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
}

// Root j of each merge: value = the root, nearest = the pole it is near, distance = mu from that.
TEAM_OF_32 __kernel void roots(__global const void *kept_base, ulong kept_offset,
                               __global const void *rho_base, ulong rho_offset,
                               __global const void *pole_base, ulong pole_offset,
                               __global const void *weight_base, ulong weight_offset,
                               __global void *nearest_base, ulong nearest_offset,
                               __global void *distance_base, ulong distance_offset, __global void *value_base,
                               ulong value_offset, const LinalgParams p) {
  __local R4 partials[TEAM];
  const long g = get_group_id(0) / p.columns;
  const int j = (int)(get_group_id(0) - g * p.columns), kept = AT_CONST(i32, kept_base, kept_offset)[2 * g];
  if (j >= kept) return;
  __global const R *poles = AT_CONST(REAL, pole_base, pole_offset) + g * p.columns;
  __global const R *weights = AT_CONST(REAL, weight_base, weight_offset) + g * p.columns;
  const R rho = AT_CONST(REAL, rho_base, rho_offset)[g], start = 1 / rho, pole = poles[j];
  const bool is_last = j == kept - 1;
  R width;  // of the interval in which the root is
  if (is_last) {
    R4 own = 0;
    for (int i = get_local_id(0); i < kept; i += TEAM) own.x += weights[i] * weights[i];
    width = rho * team_sum(own, partials).x;
  } else {
    width = poles[j + 1] - pole;
  }
  R mu = width / 2, low = 0, high = width, origin = pole;
  int nearest = j;
  R4 sums = sums_at(poles, weights, kept, j, origin, mu, partials);
  R w = start + sums.x + sums.z;
  if (!is_last && w < 0) {
    nearest = j + 1;
    origin = poles[j + 1];
    mu = low = -width / 2;
    high = 0;
  } else if (w < 0) {
    low = mu;
  } else {
    high = mu;
  }
  for (int step = 0; step < STEPS; ++step) {
    if (fabs(w) <= EPSILON * (start + fabs(sums.x) + fabs(sums.z))) break;
    const R first = (pole - origin) - mu;
    R next;
    if (is_last) {
      const R c = w - first * sums.y;
      next = mu + first + sums.y * first * first / c;
    } else {
      next = mu + step_between(w, first, (poles[j + 1] - origin) - mu, sums.y, sums.w);
    }
    if (!(next > low && next < high)) {  // away from the pole by factors, else to the middle
      if (low == 0)
        next = high / 16;
      else if (high == 0)
        next = low / 16;
      else
        next = low + (high - low) / 2;
      if (!(next > low && next < high)) break;
    }
    if (fabs(next - mu) <= EPSILON / 4 * fabs(mu)) break;
    mu = next;
    sums = sums_at(poles, weights, kept, j, origin, mu, partials);
    w = start + sums.x + sums.z;
    if (w < 0)
      low = mu;
    else
      high = mu;
  }
  if (get_local_id(0) > 0) return;
  AT(i32, nearest_base, nearest_offset)[g * p.columns + j] = nearest;
  AT(REAL, distance_base, distance_offset)[g * p.columns + j] = mu;
  AT(REAL, value_base, value_offset)[g * p.columns + j] = origin + mu;
}

// exact = the z for which the roots are exact, by Loewner's formula, with the signs of the weights; order =
// the places of all values of a merge in ascending order, and sorted = the values in that.
TEAM_OF_32 __kernel void adjust(__global const void *kept_base, ulong kept_offset,
                                __global const void *pole_base, ulong pole_offset,
                                __global const void *weight_base, ulong weight_offset,
                                __global const void *nearest_base, ulong nearest_offset,
                                __global const void *distance_base, ulong distance_offset,
                                __global const void *value_base, ulong value_offset,
                                __global void *exact_base, ulong exact_offset, __global void *order_base,
                                ulong order_offset, __global void *sorted_base, ulong sorted_offset,
                                const LinalgParams p) {
  __local R4 partials[TEAM];
  __local R factors[TEAM];
  const long g = get_group_id(0) / p.columns, at = g * p.columns;
  const int i = (int)(get_group_id(0) - at), lane = get_local_id(0), size = (int)p.columns;
  const int kept = AT_CONST(i32, kept_base, kept_offset)[2 * g];
  __global const R *poles = AT_CONST(REAL, pole_base, pole_offset) + at;
  __global const int *nearest = AT_CONST(i32, nearest_base, nearest_offset) + at;
  __global const R *distances = AT_CONST(REAL, distance_base, distance_offset) + at;
  __global const R *values = AT_CONST(REAL, value_base, value_offset) + at;
  const R value = values[i];
  int place = 0;
  for (int k = lane; k < size; k += TEAM) {
    const R other = values[k];
    const bool equal = other == value || (isnan(other) && isnan(value));
    place += equal ? k < i : other < value || (isnan(value) && !isnan(other));
  }
  R4 counts = 0;
  counts.x = place;
  place = (int)team_sum(counts, partials).x;
  if (lane == 0) {
    AT(i32, order_base, order_offset)[at + place] = i;
    AT(REAL, sorted_base, sorted_offset)[at + place] = value;
  }
  if (i >= kept) return;
  const R own = poles[i];
  R factor = 1;
  for (int k = lane; k < kept; k += TEAM) {
    const R difference = (poles[nearest[k]] - own) + distances[k];
    factor *= k == i ? difference : difference / (poles[k] - own);
  }
  factors[lane] = factor;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < TEAM && lane == 0; ++k) factor = k == 0 ? factor : factor * factors[k];
  if (lane == 0)
    AT(REAL, exact_base, exact_offset)[at + i] =
        copysign(sqrt(fabs(factor)), AT_CONST(REAL, weight_base, weight_offset)[at + i]);
}

// length = that of the vector z / (d - x) of root j.
TEAM_OF_32 __kernel void lengths(__global const void *kept_base, ulong kept_offset,
                                 __global const void *pole_base, ulong pole_offset,
                                 __global const void *exact_base, ulong exact_offset,
                                 __global const void *nearest_base, ulong nearest_offset,
                                 __global const void *distance_base, ulong distance_offset,
                                 __global void *length_base, ulong length_offset, const LinalgParams p) {
  __local R4 partials[TEAM];
  const long g = get_group_id(0) / p.columns, at = g * p.columns;
  const int j = (int)(get_group_id(0) - at), kept = AT_CONST(i32, kept_base, kept_offset)[2 * g];
  if (j >= kept) return;
  __global const R *poles = AT_CONST(REAL, pole_base, pole_offset) + at;
  __global const R *exact = AT_CONST(REAL, exact_base, exact_offset) + at;
  const R origin = poles[AT_CONST(i32, nearest_base, nearest_offset)[at + j]];
  const R mu = AT_CONST(REAL, distance_base, distance_offset)[at + j];
  R4 own = 0;
  for (int i = get_local_id(0); i < kept; i += TEAM) {
    const R part = exact[i] / ((poles[i] - origin) - mu);
    own.x += part * part;
  }
  const R square = team_sum(own, partials).x;
  if (get_local_id(0) == 0) AT(REAL, length_base, length_offset)[at + j] = sqrt(square);
}

// b [merges, columns, columns] = the vectors, as columns in ascending order of their values: row place[i] has
// the components along pole i. A work-item takes an element.
__kernel void vectors(__global const void *kept_base, ulong kept_offset, __global const void *pole_base,
                      ulong pole_offset, __global const void *exact_base, ulong exact_offset,
                      __global const void *nearest_base, ulong nearest_offset,
                      __global const void *distance_base, ulong distance_offset,
                      __global const void *length_base, ulong length_offset, __global const void *order_base,
                      ulong order_offset, __global const void *place_base, ulong place_offset,
                      __global void *b_base, ulong b_offset, const LinalgParams p) {
  const long size = p.columns, g = get_global_id(0) / (size * size);
  const long rest = get_global_id(0) - g * size * size;
  const int i = (int)(rest / size), column = (int)(rest - i * size);
  if (g >= p.count) return;
  const long at = g * size;
  const int kept = AT_CONST(i32, kept_base, kept_offset)[2 * g];
  const int j = AT_CONST(i32, order_base, order_offset)[at + column];
  R x = i == j ? 1 : 0;
  if (i < kept && j < kept) {
    __global const R *poles = AT_CONST(REAL, pole_base, pole_offset) + at;
    const R origin = poles[AT_CONST(i32, nearest_base, nearest_offset)[at + j]];
    const R mu = AT_CONST(REAL, distance_base, distance_offset)[at + j];
    x = AT_CONST(REAL, exact_base, exact_offset)[at + i] / ((poles[i] - origin) - mu) /
        AT_CONST(REAL, length_base, length_offset)[at + j];
  }
  const int row = AT_CONST(i32, place_base, place_offset)[2 * at + i];
  AT(REAL, b_base, b_offset)[at * size + row * size + column] = x;
}

// Rows of b turned as the rotations of columns by which values were deflated say, the last one first. A
// work-item takes a column.
__kernel void turn(__global const void *kept_base, ulong kept_offset, __global const void *givens_base,
                   ulong givens_offset, __global void *b_base, ulong b_offset, const LinalgParams p) {
  const long size = p.columns, g = get_global_id(0) / size;
  if (g >= p.count) return;
  __global R *b = AT(REAL, b_base, b_offset) + g * size * size + (get_global_id(0) - g * size);
  __global const R *givens = AT_CONST(REAL, givens_base, givens_offset) + g * size * 4;
  for (int k = AT_CONST(i32, kept_base, kept_offset)[2 * g + 1] - 1; k >= 0; --k) {
    const R cosine = givens[4 * k], sine = givens[4 * k + 1];
    const long first = (long)givens[4 * k + 2] * size, second = (long)givens[4 * k + 3] * size;
    const R x = b[first], y = b[second];
    b[first] = cosine * x - sine * y;
    b[second] = sine * x + cosine * y;
  }
}
