// Orthogonal polynomials whose degree is an operand (A&S chapter 22): by their three-term recurrences,
// Chebyshev's of high degree on (-1, 1) by their trigonometric forms. As in ATen, the degree is truncated and
// a negative one gives 0. special.h includes this file.
#ifndef OCLTENSOR_SPECIAL_POLYNOMIALS_H
#define OCLTENSOR_SPECIAL_POLYNOMIALS_H

// The degree as an integer that a loop can count to; -1 for NaN and for -1 and less.
INLINE long degree_of(S n) { return !(n > -1) ? -1 : n > S_(9e15) ? 9000000000000000L : (long)n; }

// A&S 22.3.15 and 22.3.16, DLMF 18.5.3 and 18.5.4, where |x| < 1 or x = -1, 1 (the limits).
enum { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W };
INLINE S chebyshev_end(int kind, bool positive, long n) {
  const S sign = positive || n % 2 == 0 ? 1 : -1;
  if (kind == CHEBYSHEV_T || (kind == CHEBYSHEV_V && positive) || (kind == CHEBYSHEV_W && !positive))
    return sign;
  return kind == CHEBYSHEV_U ? sign * (S)(n + 1) : sign * (S)(2 * n + 1);
}
INLINE S chebyshev_inside(int kind, S x, long n) {
  const S angle = acos(x), half_angle = angle / 2, between = (n + S_(0.5)) * angle;
  if (kind == CHEBYSHEV_T) return cos(n * angle);
  if (kind == CHEBYSHEV_U) return sin((n + 1) * angle) / sin(angle);
  return kind == CHEBYSHEV_V ? cos(between) / cos(half_angle) : sin(between) / sin(half_angle);
}
INLINE S s_chebyshev(int kind, S x, S degree) {
  const long n = degree_of(degree);
  if (n < 0) return 0;
  if (fabs(x) == 1) return chebyshev_end(kind, x > 0, n);
  if (n > 8 && fabs(x) < 1) return chebyshev_inside(kind, x, n);
  S before = 1, here = kind == CHEBYSHEV_T   ? x
                       : kind == CHEBYSHEV_U ? 2 * x
                       : kind == CHEBYSHEV_V ? 2 * x - 1
                                             : 2 * x + 1;
  if (n == 0) return before;
  for (long k = 1; k < n && isfinite(here); ++k) {
    const S next = 2 * x * here - before;
    before = here;
    here = next;
  }
  return here;
}

// A&S 22.7.10 to 22.7.14. The loop ends when a value overflows, which is the result; otherwise the time is
// proportional to the degree, as in ATen.
enum { HERMITE_H, HERMITE_HE, LAGUERRE_L, LEGENDRE_P };
INLINE S s_polynomial(int kind, S x, S degree) {
  const long n = degree_of(degree);
  if (n < 0) return 0;
  if (kind == LEGENDRE_P && fabs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
  if (kind == LAGUERRE_L && x == 0) return 1;
  S before = 1, here = kind == HERMITE_H ? 2 * x : kind == LAGUERRE_L ? 1 - x : x;
  if (n == 0) return before;
  for (long k = 1; k < n && isfinite(here); ++k) {
    const S next = kind == HERMITE_H    ? 2 * x * here - 2 * k * before
                   : kind == HERMITE_HE ? x * here - k * before
                   : kind == LAGUERRE_L ? ((2 * k + 1 - x) * here - k * before) / (k + 1)
                                        : ((2 * k + 1) * x * here - k * before) / (k + 1);
    before = here;
    here = next;
  }
  return here;
}
// For larger degrees ATen gives NaN for Hermite polynomials.
#define MOST_HERMITE (sizeof(T) == 8 ? 512 : 128)
INLINE S s_hermite(int kind, S x, S n) { return n >= MOST_HERMITE + 1 ? S_NAN : s_polynomial(kind, x, n); }

INLINE T chebyshev_(int kind, T x, T n) { return (T)s_chebyshev(kind, (S)x, (S)n); }
INLINE T shifted_chebyshev_(int kind, T x, T n) { return (T)s_chebyshev(kind, 2 * (S)x - 1, (S)n); }
INLINE T hermite_(int kind, T x, T n) { return (T)s_hermite(kind, (S)x, (S)n); }
INLINE T polynomial_(int kind, T x, T n) { return (T)s_polynomial(kind, (S)x, (S)n); }
#endif
