// The Schur form T = Q^H H Q of matrices in Hessenberg form by implicit QR steps: for real matrices with two
// shifts, so that T has blocks of 2 x 2 for pairs of conjugate eigenvalues (Francis, "The QR transformation",
// 1961; Golub and Van Loan, "Matrix Computations", algorithms 7.5.1 and 7.5.2), for complex ones with one.
// TYPE, PART, GROUP
#include "eig_params.h"
#include "eig_chase.h"
#include "eig_deflation.h"
#define STEPS 30  // for each eigenvalue, on average

// The first row of the block that ends with row `hi`: the element left of it counts as zero.
INLINE long start_of_block(__global const T *a, long n, long hi) {
  long k = hi;
  while (k > 0 && !is_negligible(a, n, k, hi)) --k;
  return k;
}

#if COMPLEX
// The shift is the eigenvalue of the last 2 x 2 block that is nearer to its last element (Wilkinson).
INLINE Reflector first_reflector(__global const T *a, long n, long lo, long hi, long tries) {
  const T last = a[hi * n + hi];
  T shift = last;
  if (tries % 10 == 9) {
    shift += number((R)0.75 * modulus(a[hi * n + hi - 1]));
  } else {
    const T half_gap = (a[(hi - 1) * n + hi - 1] - last) / 2;
    const T mean = product(csqrt_(a[(hi - 1) * n + hi]), csqrt_(a[hi * n + hi - 1]));
    const R scale = fmax(largest_part(half_gap), largest_part(mean));
    if (scale > 0) {
      const T x = half_gap / scale, y = mean / scale;
      T root = csqrt_(product(x, x) + product(y, y));
      if (x.x * root.x + x.y * root.y < 0) root = -root;
      if (square(x + root) > 0) shift -= scale * quotient(product(y, y), x + root);
    }
  }
  return reflector(a[lo * n + lo] - shift, a[(lo + 1) * n + lo], number(0));
}
#else
// Both eigenvalues of the last 2 x 2 block are shifts, or twice the one nearer to its last element if they
// are real.
INLINE Reflector first_reflector(__global const T *a, long n, long lo, long hi, long tries) {
  R h00 = a[(hi - 1) * n + hi - 1], h01 = a[(hi - 1) * n + hi];
  R h10 = a[hi * n + hi - 1], h11 = a[hi * n + hi];
  if (tries % 10 == 9) {  // an exceptional shift, from the block's end or its beginning
    const bool at_end = tries % 20 == 9;
    const R size = at_end ? fabs(h10) + fabs(a[(hi - 1) * n + hi - 2])
                          : fabs(a[(lo + 1) * n + lo]) + fabs(a[(lo + 2) * n + lo + 1]);
    h00 = h11 = (R)0.75 * size + (at_end ? h11 : a[lo * n + lo]);
    h01 = (R)-0.4375 * size;
    h10 = size;
  }
  const R scale = fabs(h00) + fabs(h01) + fabs(h10) + fabs(h11);
  R re0 = 0, re1 = 0, im = 0;  // the shifts re0 + i im and re1 - i im
  if (scale > 0) {
    const R center = (h00 / scale + h11 / scale) / 2;
    const R det = (h00 / scale - center) * (h11 / scale - center) - h01 / scale * (h10 / scale);
    const R root = sqrt(fabs(det));
    if (det >= 0) {
      re0 = re1 = center * scale;
      im = root * scale;
    } else {
      const R up = center + root, down = center - root;
      re0 = re1 = (fabs(up - h11 / scale) <= fabs(down - h11 / scale) ? up : down) * scale;
    }
  }
  return shifted_reflector(a[lo * n + lo], a[lo * n + lo + 1], a[(lo + 1) * n + lo],
                           a[(lo + 1) * n + lo + 1], a[(lo + 2) * n + lo + 1], re0, re1, im);
}

typedef struct {
  R a, b, c, d;      // the block after the reflection
  cplx first, second;  // its eigenvalues
} Block;

// The reflection that makes c of a block (a b; c d) zero if its eigenvalues are real, else a = d and b c < 0
// (Bai and Demmel, "On swapping diagonal blocks in real Schur form", 1993, section 3).
INLINE Reflector standardise(Block *block) {
  R a = block->a, b = block->b, c = block->c, d = block->d, cosine = 1, sine = 0;
  if (c != 0) {
    const R half_gap = (a - d) / 2, sum = b + c;
    const R scale = fmax(fabs(half_gap), fmax(fabs(b), fabs(c)));
    const R under_root = (half_gap / scale) * (half_gap / scale) + b / scale * (c / scale);
    if (under_root >= 0) {  // the rows become (c, z), an eigenvector of the transpose, and what is orthogonal
      const R z = half_gap + copysign(scale * sqrt(under_root), half_gap);
      const R length = hypot(z, c);
      cosine = z / length;
      sine = c / length;
      a = d + z;
      d = z == 0 ? d : d - b / z * c;
      b = b - c;
      c = 0;
    } else {
      // By the angle t with tan 2t = (d - a) / (b + c) the diagonal elements become equal.
      const R length = hypot(sum, 2 * half_gap);
      if (half_gap != 0) {
        cosine = sqrt((1 + fabs(sum) / length) / 2);
        sine = -half_gap / (length * cosine) * copysign((R)1, sum);
        const R center = (a + d) / 2, difference = (b - c) / 2;
        const R half_length = copysign(length / 2, sum);
        a = d = center;
        b = half_length + difference;
        c = half_length - difference;
      }
    }
  }
  block->first = Z(a, 0);
  block->second = Z(d, 0);
  if (c != 0) {
    const R im = sqrt(fabs(b)) * sqrt(fabs(c));
    block->first.y = im;
    block->second.y = -im;
  }
  // The rotation (cosine sine; -sine cosine) with the sign of its first row changed is a reflection.
  if (cosine < 0) cosine = -cosine, sine = -sine;
  Reflector g;
  g.tau = 1 + cosine;
  g.v1 = sine / g.tau;
  g.v2 = g.beta = 0;
  block->a = a, block->b = -b, block->c = -c, block->d = d;
  return g;
}
#endif

// a becomes T, q the transpose of Q, or, without vectors, only the eigenvalues are right. value [count, n]:
// the eigenvalues of T; scaled [count, n]: of the matrix before scaling, NaN where it has not converged.
TEAM __kernel void schur(__global void *a_base, ulong a_offset, __global void *q_base, ulong q_offset,
                         __global void *value_base, ulong value_offset, __global void *scaled_base,
                         ulong scaled_offset, __global const void *number_base, ulong number_offset,
                         const EigParams p) {
#if !CPU_STYLE
  __local T window[WINDOW][WINDOW + 1], turned[WINDOW][WINDOW];
#endif
  const long m = get_group_id(0), n = p.n;
  __global T *a = NUMBERS(a_base, a_offset) + m * n * n;
  __global T *q = NUMBERS(q_base, q_offset) + (p.vectors ? m * n * n : 0);
  __global cplx *values = AT_CPLX(value_base, value_offset) + m * n;
  __global cplx *scaled = AT_CPLX(scaled_base, scaled_offset) + m * n;
  const R unit = AT_CONST(REAL, number_base, number_offset)[m * 2];
  long hi = isnan(unit) ? -1 : n - 1, tries = 0, left = STEPS * max(n, 10L);
  while (hi >= 0 && left > 0) {
    const long lo = start_of_block(a, n, hi);
    bool one = lo == hi, pair = IF_REAL(lo + 1 == hi);
    const long begin = p.vectors ? 0 : lo, end = p.vectors ? n : hi + 1;
    Reflector g;
#if !COMPLEX
    Block block;
    if (pair) {
      block.a = a[lo * n + lo], block.b = a[lo * n + hi], block.c = a[hi * n + lo], block.d = a[hi * n + hi];
      g = standardise(&block);
    }
#endif
    if (!one && !pair) g = first_reflector(a, n, lo, hi, tries);
    if (one && LANE == 0) values[hi] = complex_of(a[hi * n + hi]);
    SYNC;
    long last = one ? lo - 1 : hi - 1;
#if !CPU_STYLE
    const bool chases = !one && !pair;
    const Chase chase = {n, lo, chases ? hi : lo, begin, end, p.vectors != 0};
    chase_bulge(a, q, chase, g, window, turned);
    if (chases) last = lo - 1;
#endif
    for (long k = lo; k <= last; ++k) {
      const bool three = IF_REAL(k + 2 <= hi);
      if (k > lo)
        g = reflector(a[k * n + k - 1], a[(k + 1) * n + k - 1], three ? a[(k + 2) * n + k - 1] : number(0));
      turn(a + k * n + k, n, 1, end - k, g, three, false);
      SYNC;
      turn(a + begin * n + k, 1, n, min(k + 3, hi) + 1 - begin, g, three, true);
      if (p.vectors) turn(q + k * n, n, 1, n, g, three, true);
      if (LANE == 0 && k > lo) {
        a[k * n + k - 1] = g.beta;
        a[(k + 1) * n + k - 1] = number(0);
        if (three) a[(k + 2) * n + k - 1] = number(0);
      }
      SYNC;
    }
#if !COMPLEX
    if (pair && LANE == 0) {
      a[lo * n + lo] = block.a, a[lo * n + hi] = block.b, a[hi * n + lo] = block.c, a[hi * n + hi] = block.d;
      values[lo] = block.first;
      values[hi] = block.second;
    }
#endif
    if (one || pair) hi = lo - 1;
    tries = one || pair ? 0 : tries + 1;
    left -= one || pair ? 0 : 1;
  }
  SYNC;
  FOR_TEAM(i, 0, n) scaled[i] = hi >= 0 || isnan(unit) ? Z(NAN, NAN) : values[i] * unit;
}
