// Special functions of scalars, with the methods of src/host/cpu/special_math.cpp: computed in S, the widest
// type of the device, and rounded once to T. Only programs that define SPECIAL read it. "A&S" is Abramowitz
// and Stegun, Handbook of Mathematical Functions; "DLMF" is the NIST Digital Library of Mathematical
// Functions.
#ifndef OCLTENSOR_SPECIAL_H
#define OCLTENSOR_SPECIAL_H
#ifdef SPECIAL
#ifdef cl_khr_fp64
typedef double S;
#define S_EPSILON 1e-17
#define S_TINY 1e-300
#define S_SMALL 1e-8   // below it, Bessel functions are their first terms
#define S_LARGE 1e200  // rescaling threshold
#else
typedef float S;
#define S_EPSILON 1e-8f
#define S_TINY 1e-30f
#define S_SMALL 1e-4f
#define S_LARGE 1e15f
#endif
#define S_(x) ((S)(x))  // a literal
#define S_PI S_(3.14159265358979323846)
#define SQRT_PI S_(1.77245385090551602730)
#define ROOT_HALF S_(0.70710678118654752440)
#define ROOT_2 S_(1.41421356237309504880)
#define LN_2 S_(0.69314718055994530942)
#define EULER S_(0.57721566490153286061)
#define S_NAN ((S)NAN)
#define S_INF ((S)INFINITY)
#define FUNCTION(name, function) \
  INLINE T name(T a) { return (T)function((S)a); }

// B(2k) / (2k)! for k = 1 .. 12 (A&S table 23.2), for Euler-Maclaurin sums.
__constant S bernoulli_over_factorial[12] = {
    8.3333333333333333e-02,  -1.3888888888888889e-03, 3.3068783068783069e-05,  -8.2671957671957672e-07,
    2.0876756987868099e-08,  -5.2841901386874932e-10, 1.3382536530684679e-11,  -3.3896802963225829e-13,
    8.5860620562778446e-15,  -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};

// ---- digamma: recurrence to x >= 12, then the asymptotic series; reflection below 0 (A&S 6.3.5, 6.3.7,
// 6.3.18)
INLINE S digamma_positive(S x) {
  S result = 0;
  for (; x < 12; x += 1) result -= 1 / x;
  const S i = 1 / (x * x);
  const S series =
      i * (S_(1.0 / 12) -
           i * (S_(1.0 / 120) -
                i * (S_(1.0 / 252) -
                     i * (S_(1.0 / 240) - i * (S_(1.0 / 132) - i * (S_(691.0 / 32760) - i / 12))))));
  return result + log(x) - S_(0.5) / x - series;
}
INLINE S s_digamma(S x) {
  if (x != x) return x;
  if (x == 0) return copysign(S_INF, -x);
  if (isinf(x)) return x > 0 ? x : S_NAN;
  if (x > 0) return digamma_positive(x);
  if (x == floor(x)) return S_NAN;
  return digamma_positive(1 - x) - S_PI / tan(S_PI * (x - trunc(x)));
}

// ---- Hurwitz zeta by Euler-Maclaurin summation (DLMF 25.11.5)
INLINE S s_zeta(S s, S q) {
  if (s != s || q != q) return S_NAN;
  if (s == 1) return S_INF;
  if (s < 1) return S_NAN;
  if (q <= 0) {
    if (q == floor(q)) return S_INF;
    if (s != floor(s)) return S_NAN;
  }
  if (isinf(q)) return 0;
  S sum = 0;
  for (; q < 12; q += 1) {
    const S term = pow(q, -s);
    sum += term;
    if (q > 0 && term < sum * S_EPSILON) return sum;
  }
  const S power = pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  S factor = s * power / q;
  for (int k = 0; k < 12; ++k) {
    const S term = factor * bernoulli_over_factorial[k];
    sum += term;
    if (fabs(term) < fabs(sum) * S_EPSILON) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
  }
  return sum;
}

// A&S 6.4.10 by way of the zeta function; n = 1 reflects below 1/2 (A&S 6.4.7).
INLINE S s_polygamma(S n, S x) {
  if (n == 0) return s_digamma(x);
  if (n == 1 && x < S_(0.5)) {
    const S s = sin(S_PI * x);
    return S_PI * S_PI / (s * s) - s_zeta(2, 1 - x);
  }
  const S value = exp(lgamma(n + 1)) * s_zeta(n + 1, x);
  return fmod(n, S_(2)) == 0 ? -value : value;
}

// ---- exp(x^2) erfc(x): directly below 2, above by the continued fraction A&S 7.1.14, backwards
INLINE S s_erfcx(S x) {
  if (x < 2) return exp(x * x) * erfc(x);
  S f = x;
  for (int k = 200; k > 0; --k) f = x + S_(0.5) * k / f;
  return 1 / (SQRT_PI * f);
}
INLINE S s_log_ndtr(S x) {
  const S t = x * ROOT_HALF;
  return x < -1 ? log(s_erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

// ---- inverses of erf: Winitzki's approximation ("A handy approximation for the error function and its
// inverse", 2008), then Halley's method on whichever of erf and erfc is not saturated. x in [0, 1), q = 1 - x
// to full precision.
INLINE S inverse_erf(S x, S q) {
  const S a = S_(0.147), l = log(q * (2 - q)), h = 2 / (S_PI * a) + l / 2;
  S y = sqrt(sqrt(h * h - l / a) - h);
  if (q < S_TINY * S_(1e10)) {  // near the smallest numbers only logarithms are accurate: Newton on log erfc
    for (int i = 0; i < 4; ++i) {
      const S scaled = s_erfcx(y);
      y += (log(scaled) - y * y - log(q)) * scaled * SQRT_PI / 2;
    }
    return y;
  }
  for (int i = 0; i < 4; ++i) {
    const S error = x < S_(0.5) ? erf(y) - x : q - erfc(y);
    const S step = error / (2 / SQRT_PI * exp(-y * y));
    y -= step / (1 + y * step);
  }
  return y;
}
INLINE S s_erfinv(S x) {
  const S a = fabs(x);
  if (!(a <= 1)) return S_NAN;
  if (a == 1) return x * S_INF;
  if (a < S_SMALL) return x * (SQRT_PI / 2);
  return copysign(inverse_erf(a, 1 - a), x);
}
// Quantile of the normal distribution: -sqrt(2) erfcinv(2 p).
INLINE S s_ndtri(S p) {
  if (!(p >= 0 && p <= 1)) return S_NAN;
  if (p == 0 || p == 1) return p == 0 ? -S_INF : S_INF;
  const S q = p <= S_(0.5) ? 2 * p : 2 * (1 - p);
  const S y = p == S_(0.5) ? 0 : inverse_erf(1 - q, q);
  return p < S_(0.5) ? -ROOT_2 * y : ROOT_2 * y;
}

// ---- exp(-|x|) I_n(x), n = 0 or 1: power series (A&S 9.6.10), or for large |x| the asymptotic expansion
// (A&S 9.7.1)
INLINE S scaled_bessel_i(int n, S x) {
  const S z = fabs(x);
  S sum = 1, term = 1;
  if (x != x) return x;
  if (z < 25) {
    for (int k = 1; term > sum * S_EPSILON; ++k) {
      term *= z * z / (S_(4) * k * (k + n));
      sum += term;
    }
    sum *= exp(-z) * (n == 1 ? z / 2 : 1);
  } else if (isinf(z)) {
    sum = 0;
  } else {
    for (int k = 1; k < 40 && fabs(term) > S_EPSILON; ++k) {
      const S odd = 2 * k - 1;
      term *= -(S_(4) * n * n - odd * odd) / (8 * k * z);
      sum += term;
    }
    sum /= sqrt(2 * S_PI) * sqrt(z);  // the product could overflow
  }
  return n == 1 && x < 0 ? -sum : sum;
}
INLINE S s_i0e(S x) { return scaled_bessel_i(0, x); }
INLINE S s_i1e(S x) { return scaled_bessel_i(1, x); }
INLINE S s_i0(S x) {  // in two steps: exp(x) overflows first
  const S half_way = exp(fabs(x) / 2);
  return isinf(x) ? S_INF : scaled_bessel_i(0, x) * half_way * half_way;
}
INLINE S s_i1(S x) {
  const S half_way = exp(fabs(x) / 2);
  return isinf(x) ? x : scaled_bessel_i(1, x) * half_way * half_way;
}

// ---- J0, J1, Y0, Y1 of x > 0
typedef struct {
  S j0, j1, y0, y1;
} Bessel;

// P and Q of Hankel's expansions (A&S 9.2.9, 9.2.10); square = 4 order^2.
INLINE void hankel_sums(S square, S x, S *p, S *q) {
  S term = 1;
  *p = 1;
  *q = 0;
  for (int k = 1; k < 60; ++k) {
    const S odd = 2 * k - 1, next = term * (square - odd * odd) / (8 * k * x);
    if (fabs(next) > fabs(term) || fabs(next) < S_EPSILON) break;
    term = next;
    const S signed_term = (k / 2) % 2 == 0 ? term : -term;
    if (k % 2 == 0) *p += signed_term;
    else *q += signed_term;
  }
}
// Hankel's expansions (A&S 9.2.5, 9.2.6): J = sqrt(2 / pi x) (P cos - Q sin), Y = the same with (P sin + Q
// cos).
INLINE void hankel(int order, S x, S *j, S *y) {
  S p, q;
  hankel_sums(4 * order, x, &p, &q);
  const S sine = sin(x), cosine = cos(x);
  const S c = (order == 0 ? cosine + sine : sine - cosine) * ROOT_HALF;
  const S s = (order == 0 ? sine - cosine : -sine - cosine) * ROOT_HALF;
  const S scale = sqrt(2 / S_PI) / sqrt(x);  // pi x could overflow
  *j = scale * (p * c - q * s);
  *y = scale * (p * s + q * c);
}

// Backwards recurrence (Miller), scaled by J0 + 2 (J2 + J4 + ..) = 1; Y by Neumann's series (A&S 9.1.89) and
// its derivative.
INLINE Bessel miller(S x) {
  const int start = (int)x / 2 * 2 + 40;
  S above = 0, here = S_TINY, norm = 0, y0 = 0, y1 = 0;
  for (int k = start; k > 0; --k) {  // here = J_k, above = J_(k + 1)
    const S below = 2 * k / x * here - above;
    if (k % 2 == 0) {
      const S sign = (k / 2) % 2 == 0 ? 1 : -1;
      norm += 2 * here;
      y0 += sign * here / (k / 2);
      y1 += sign * (below - above) / (k / 2);
    }
    above = here;
    here = below;
    if (fabs(here) > S_LARGE) {
      const S down = 1 / S_LARGE;
      above *= down;
      here *= down;
      norm *= down;
      y0 *= down;
      y1 *= down;
    }
  }
  norm += here;
  Bessel b;
  b.j0 = here / norm;
  b.j1 = above / norm;
  const S l = log(x) - LN_2 + EULER;
  b.y0 = 2 / S_PI * (l * b.j0 - 2 * y0 / norm);
  b.y1 = 2 / S_PI * (l * b.j1 - b.j0 / x + y1 / norm);
  return b;
}

INLINE Bessel bessel(S x) {
  Bessel b;
  if (x < S_SMALL) {
    b.j0 = 1;
    b.j1 = x / 2;
    b.y0 = 2 / S_PI * (log(x) - LN_2 + EULER);
    b.y1 = -2 / (S_PI * x);
    return b;
  }
  if (x < 25) return miller(x);
  if (isinf(x)) {
    b.j0 = b.j1 = b.y0 = b.y1 = 0;
    return b;
  }
  hankel(0, x, &b.j0, &b.y0);
  hankel(1, x, &b.j1, &b.y1);
  return b;
}
INLINE S s_j0(S x) { return x != x ? x : bessel(fabs(x)).j0; }
INLINE S s_j1(S x) { return x != x ? x : copysign(S_(1), x) * bessel(fabs(x)).j1; }
INLINE S s_y0(S x) { return x == 0 ? -S_INF : x > 0 ? bessel(x).y0 : S_NAN; }
INLINE S s_y1(S x) { return x == 0 ? -S_INF : x > 0 ? bessel(x).y1 : S_NAN; }

// ---- incomplete gamma functions
// log1p(x) - x without cancellation for small x: Taylor series (A&S 4.1.24).
INLINE S log1p_minus(S x) {
  if (fabs(x) > S_(0.3)) return log1p(x) - x;
  S power = -x * x, sum = 0;
  for (int k = 2; k < 60 && fabs(power) > fabs(sum) * S_EPSILON; ++k, power *= -x) sum += power / k;
  return sum;
}
// x^a exp(-x) / Gamma(a + 1); for large a by Stirling's series (A&S 6.1.41) around x = a.
INLINE S gamma_prefactor(S a, S x) {
  if (a < 20) return exp(a * log(x) - x - lgamma(a + 1));
  const S i = 1 / (a * a);
  const S correction =
      (S_(1.0 / 12) - i * (S_(1.0 / 360) - i * (S_(1.0 / 1260) - i * (S_(1.0 / 1680) - i / 1188)))) / a;
  return exp(a * log1p_minus((x - a) / a) - correction) / sqrt(2 * S_PI * a);
}
// P(a, x) by its power series (DLMF 8.11.4).
INLINE S lower_series(S a, S x) {
  S sum = 1, term = 1;
  for (S n = a + 1; term > sum * S_EPSILON; n += 1) {
    term *= x / n;
    sum += term;
  }
  return sum * gamma_prefactor(a, x);
}
// Q(a, x) by its continued fraction (DLMF 8.9.2), evaluated with Lentz's method.
INLINE S upper_fraction(S a, S x) {
  S b = x + 1 - a, c = 1 / S_TINY, d = 1 / b, f = d;
  for (int i = 1; i < 100000; ++i) {
    const S numerator = -i * (i - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (d == 0 ? (S)S_TINY : d);
    if (c == 0) c = S_TINY;
    f *= d * c;
    if (fabs(d * c - 1) < 10 * S_EPSILON) break;
  }
  return f * gamma_prefactor(a, x) * a;
}
// The edge cases as ATen defines them, for the lower function P.
INLINE bool gamma_edge(S a, S x, S *lower) {
  if (a != a || x != x || a < 0 || x < 0) *lower = S_NAN;
  else if (a == 0) *lower = x > 0 ? 1 : S_NAN;
  else if (x == 0) *lower = 0;
  else if (isinf(a)) *lower = isinf(x) ? S_NAN : 0;
  else if (isinf(x)) *lower = 1;
  else return false;
  return true;
}
INLINE S s_igamma(S a, S x, bool upper) {
  S lower;
  if (gamma_edge(a, x, &lower)) return upper ? 1 - lower : lower;
  if (x < a + 1) {
    lower = lower_series(a, x);
    return upper ? 1 - lower : lower;
  }
  const S rest = upper_fraction(a, x);
  return upper ? rest : 1 - rest;
}

FUNCTION(digamma_, s_digamma)
FUNCTION(erfinv_, s_erfinv)
FUNCTION(ndtri_, s_ndtri)
FUNCTION(erfcx_, s_erfcx)
FUNCTION(log_ndtr_, s_log_ndtr)
FUNCTION(i0_, s_i0)
FUNCTION(i0e_, s_i0e)
FUNCTION(i1_, s_i1)
FUNCTION(i1e_, s_i1e)
FUNCTION(bessel_j0_, s_j0)
FUNCTION(bessel_j1_, s_j1)
FUNCTION(bessel_y0_, s_y0)
FUNCTION(bessel_y1_, s_y1)
INLINE T zeta_(T s, T q) { return (T)s_zeta((S)s, (S)q); }
INLINE T polygamma_(T n, T x) { return (T)s_polygamma((S)n, (S)x); }
INLINE T igamma_(T a, T x) { return (T)s_igamma((S)a, (S)x, false); }
INLINE T igammac_(T a, T x) { return (T)s_igamma((S)a, (S)x, true); }
#include "special_bessel.h"
#include "special_polynomials.h"
#include "special_draws.h"
#undef FUNCTION
#endif
#endif
