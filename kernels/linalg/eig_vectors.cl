// Eigenvectors of general matrices from their Schur form A = Q T Q^H: back substitution, the product with Q,
// and LAPACK's normalisation. A work-item has an eigenvector. TYPE, PART, CPU_STYLE
#include "eig_params.h"
#include "matrix_elements.h"
#define GROWTH 0x1p30f  // a vector that grows beyond that is scaled

// The eigenvectors that a work-item has: one, or the two of a pair of conjugate eigenvalues, of which the
// second is made from the first. `end`: the number of elements that are not zero before the product.
typedef struct {
  long m, k, end;
  bool own, pair;
} Place;
INLINE Place place_of(long id, __global const void *value_base, ulong value_offset,
                      __global const void *number_base, ulong number_offset, const EigParams p) {
  Place at;
  at.m = id / p.n;
  at.k = id - at.m * p.n;
  at.own = at.m < p.count;
  at.pair = false;
  if (at.own) {
    const R im = AT_CPLX_CONST(value_base, value_offset)[id].y;
    const R unit = AT_CONST(REAL, number_base, number_offset)[at.m * 2];
    at.own = !isnan(unit);
    if (IF_REAL(im < 0)) at.own = false;
    at.pair = IF_REAL(im > 0);
  }
  at.end = at.k + (at.pair ? 2 : 1);
  return at;
}

// The quotient of a number and a pivot; pivots smaller than `least` count as that.
INLINE cplx solve_for(cplx x, cplx pivot, R least) {
  return fmax(fabs(pivot.x), fabs(pivot.y)) < least ? x / least : cdiv(x, pivot);
}

// A row of T times a vector, from column `first` to the vector's end: several sums at once, as a work-item
// waits for what it reads.
#define SUMS 8
INLINE cplx product_with(__global const T *row, __global const cplx *x, long step, long first, long end) {
  cplx sums[SUMS];
  UNROLL for (int s = 0; s < SUMS; ++s) sums[s] = Z(0, 0);
  long j = first;
  for (; j + SUMS <= end; j += SUMS)
    UNROLL for (int s = 0; s < SUMS; ++s) sums[s] += times(row[j + s], x[(j + s) * step]);
  for (; j < end; ++j) sums[0] += times(row[j], x[j * step]);
  UNROLL for (int s = 1; s < SUMS; ++s) sums[0] += sums[s];
  return sums[0];
}

// x [count, n, n] = the solutions of (T - l I) x = 0 with one element 1.
__kernel void substitute(__global const void *a_base, ulong a_offset, __global void *x_base, ulong x_offset,
                         __global const void *value_base, ulong value_offset,
                         __global const void *number_base, ulong number_offset, const EigParams p) {
  const long n = p.n, step = p.x_row;
  const Place at = place_of(get_global_id(0), value_base, value_offset, number_base, number_offset, p);
  if (!at.own) return;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + at.m * n * n;
  __global const cplx *values = AT_CPLX_CONST(value_base, value_offset) + at.m * n;
  __global cplx *x = AT_CPLX(x_base, x_offset) + at.m * n * n + at.k * p.x_col;
  const cplx own = values[at.k];
  const R size = AT_CONST(REAL, number_base, number_offset)[at.m * 2 + 1];
  const R least = fmax(EPSILON * (fabs(own.x) + fabs(own.y)), fmax(EPSILON * EPSILON * size, (R)LEAST));
  x[at.k * step] = Z(1, 0);
#if !COMPLEX
  if (at.pair) {  // of the block (a b; c a) with the eigenvalue a + i w, w^2 = -b c
    const R b = a[at.k * n + at.k + 1], c = a[(at.k + 1) * n + at.k];
    if (fabs(b) >= fabs(c)) {
      x[(at.k + 1) * step] = Z(0, own.y / b);
    } else {
      x[at.k * step] = Z(0, own.y / c);
      x[(at.k + 1) * step] = Z(1, 0);
    }
  }
#endif
  for (long i = at.k - 1; i >= 0; --i) {
    const cplx pivot = complex_of(a[i * n + i]) - own;
    cplx right = -product_with(a + i * n, x, step, i + 1, at.end);
    R most;
#if !COMPLEX
    if (values[i].y < 0) {  // the second row of a block
      const R b = a[(i - 1) * n + i], c = a[i * n + i - 1];
      const cplx above = -product_with(a + (i - 1) * n, x, step, i + 1, at.end);
      const cplx first = Z(a[(i - 1) * n + i - 1], 0) - own;
      const bool swap = fabs(c) > fmax(fabs(first.x), fabs(first.y));
      const cplx p00 = swap ? Z(c, 0) : first, p01 = swap ? pivot : Z(b, 0), r0 = swap ? right : above;
      const cplx p10 = swap ? first : Z(c, 0), p11 = swap ? Z(b, 0) : pivot, r1 = swap ? above : right;
      const cplx factor = solve_for(p10, p00, least);
      const cplx second = solve_for(r1 - cmul(factor, r0), p11 - cmul(factor, p01), least);
      const cplx before = solve_for(r0 - cmul(p01, second), p00, least);
      x[i * step] = second;
      x[(i - 1) * step] = before;
      most = fmax(fmax(fabs(second.x), fabs(second.y)), fmax(fabs(before.x), fabs(before.y)));
      --i;
    } else
#endif
    {
      right = solve_for(right, pivot, least);
      x[i * step] = right;
      most = fmax(fabs(right.x), fabs(right.y));
    }
    if (most > GROWTH)
      for (long j = i; j < at.end; ++j) x[j * step] /= most;
  }
}

// y = P D Q x, with D and the exchanges P from balancing; q is the transpose of Q. On GPUs a work-item has
// an element.
__kernel void combine(__global const void *q_base, ulong q_offset, __global void *x_base, ulong x_offset,
                      __global void *y_base, ulong y_offset, __global const void *scale_base,
                      ulong scale_offset, __global const void *value_base, ulong value_offset,
                      __global const void *number_base, ulong number_offset, const EigParams p) {
  const long n = p.n, step = p.x_row;
  const long id = get_global_id(0), shared = CPU_STYLE ? 1 : n;  // work-items of an eigenvector
  const long m = id / (shared * n), rest = id - m * shared * n;
  const Place at = place_of(m * n + rest % n, value_base, value_offset, number_base, number_offset, p);
  if (!at.own) return;
  __global const T *q = NUMBERS_CONST(q_base, q_offset) + m * n * n;
  __global cplx *x = AT_CPLX(x_base, x_offset) + m * n * n + at.k * p.x_col;
  __global cplx *y = AT_CPLX(y_base, y_offset) + m * n * n + at.k * p.x_col;
  __global const R *scales = AT_CONST(REAL, scale_base, scale_offset) + m * 3 * n, *places = scales + 2 * n;
#if CPU_STYLE
  for (long i = 0; i < n; ++i) y[i * step] = Z(0, 0);
  for (long j = 0; j < at.end; ++j) {
    const cplx factor = x[j * step];
    for (long i = 0; i < n; ++i) y[i * step] += times(q[j * n + i], factor);
  }
  for (long i = 0; i < n; ++i) x[i * step] = y[i * step] * scales[i];
  for (long i = 0; i < n; ++i) y[(long)places[i] * step] = x[i * step];
#else
  const long i = rest / n;
  cplx sum = Z(0, 0);
  for (long j = 0; j < at.end; ++j) sum += times(q[j * n + i], x[j * step]);
  y[(long)places[i] * step] = sum * scales[i];
#endif
}

// Eigenvectors get the length 1, complex ones a real element of the largest modulus; NaN where there is none.
__kernel void normalise(__global void *y_base, ulong y_offset, __global const void *value_base,
                        ulong value_offset, __global const void *number_base, ulong number_offset,
                        const EigParams p) {
  const long n = p.n, step = p.x_row;
  const Place at = place_of(get_global_id(0), value_base, value_offset, number_base, number_offset, p);
  if (at.m >= p.count) return;
  __global cplx *y = AT_CPLX(y_base, y_offset) + at.m * n * n + at.k * p.x_col;
  if (isnan(AT_CONST(REAL, number_base, number_offset)[at.m * 2]))
    for (long i = 0; i < n; ++i) y[i * step] = Z(NAN, NAN);
  if (!at.own) return;
  R largest = 0, sum = 0, most = -1;
  for (long i = 0; i < n; ++i) largest = fmax(largest, fmax(fabs(y[i * step].x), fabs(y[i * step].y)));
  long place = 0;
  for (long i = 0; i < n; ++i) {
    const cplx v = y[i * step] / largest;
    const R here = v.x * v.x + v.y * v.y;
    sum += here;
    if (here > most) most = here, place = i;
  }
  const R length = sqrt(sum);
  const bool real = IF_REAL(!at.pair);
  const cplx phase = real ? Z(1, 0) : cconj(y[place * step] / largest) / sqrt(most);
  for (long i = 0; i < n; ++i) {
    cplx v = cmul(y[i * step] / largest, phase) / length;
    if (real || i == place) v.y = 0;
    y[i * step] = v;
    if (at.pair) y[i * step + p.x_col] = cconj(v);
  }
}
