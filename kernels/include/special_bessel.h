// Modified Bessel functions K0 and K1, Airy's Ai, and the spherical Bessel function j0. special.h includes
// this file.
#ifndef OCLTENSOR_SPECIAL_BESSEL_H
#define OCLTENSOR_SPECIAL_BESSEL_H

// exp(x) K_order(x) for x > 0: the integral of exp(-2 x sinh^2(t / 2)) cosh(order t) over t > 0 (A&S 9.6.24)
// by the trapezoidal rule, whose error for this integrand, analytic in |Im t| < pi / 2, is of the order
// exp(-pi^2 / step).
INLINE S scaled_bessel_k(S order, S x) {
  if (x != x) return x;
  if (isinf(x)) return 0;
  // At `end` the integrand has fallen by exp(-48). The limit is for an x that the device flushes to 0.
  const S end = fmin(2 * asinh(sqrt(S_(24)) / sqrt(x)), S_(1500));
  const S step = fmin(end / 24, S_(0.2));
  S sum = step / 2;
  for (int i = 1; i * step < end; ++i) {  // cosh, 2 x, and the sum without its step, could overflow
    const S t = i * step, s = sinh(t / 2), fall = -2 * (x * s) * s;
    sum += (exp(fall + order * t) + exp(fall - order * t)) * (step / 2);
  }
  return sum;
}
INLINE S s_scaled_k(int order, S x) {
  if (x == 0) return S_INF;
  if (x < 0) return S_NAN;
  if (x < S_SMALL) return exp(x) * (order == 0 ? LN_2 - EULER - log(x) : 1 / x);  // A&S 9.6.8, 9.6.9
  return scaled_bessel_k(order, x);
}
INLINE S s_k(int order, S x) { return x > 0 ? exp(-x) * s_scaled_k(order, x) : s_scaled_k(order, x); }

// J_order(x) for a fraction as order: backwards recurrence (Miller), scaled by A&S 9.1.87: sum of (order + 2
// k) Gamma(order + k) / k! J_(order + 2 k) = (x / 2)^order.
INLINE S fractional_j(S order, S x) {
  const int pairs = (int)x / 2 + 20;
  S weight = tgamma(order + 1) / order;  // Gamma(order + k) / k! at k = 0
  for (int k = 1; k <= pairs; ++k) weight *= (order + k - 1) / k;
  S above = 0, here = S_TINY, norm = 0;
  for (int k = 2 * pairs; k > 0; --k) {  // here = J_(order + k)
    if (k % 2 == 0) {
      norm += (order + k) * weight * here;
      weight *= (k / 2) / (order + k / 2 - 1);
    }
    const S below = 2 * (order + k) / x * here - above;
    above = here;
    here = below;
    if (fabs(here) > S_LARGE) {
      above /= S_LARGE;
      here /= S_LARGE;
      norm /= S_LARGE;
    }
  }
  norm += order * weight * here;
  return here / norm * pow(x / 2, order);
}

// Maclaurin's series (A&S 10.4.2) near 0; elsewhere by Bessel functions of order 1/3 of z = 2/3 |x|^1.5
// (A&S 10.4.14 and 10.4.15), which for large z are Hankel's expansion.
INLINE S s_airy(S x) {
  if (x != x) return x;
  if (isinf(x)) return 0;
  if (fabs(x) <= 1) {
    const S cube = x * x * x;
    S f = 1, g = x, f_term = 1, g_term = x;
    for (int k = 1; k < 12; ++k) {
      f_term *= cube / ((3 * k - 1) * (3 * k));
      g_term *= cube / ((3 * k) * (3 * k + 1));
      f += f_term;
      g += g_term;
    }
    return S_(0.35502805388781723926) * f - S_(0.25881940379280679841) * g;
  }
  const S third = S_(1) / 3, root = sqrt(fabs(x)), z = 2 * third * fabs(x) * root;
  if (x > 0) return isinf(z) ? 0 : root / (S_PI * sqrt(S_(3))) * exp(-z) * scaled_bessel_k(third, z);
  if (isinf(z)) return 0;
  if (z < 25) return root / 3 * (fractional_j(third, z) + fractional_j(-third, z));
  S p, q;
  hankel_sums(S_(4) / 9, z, &p, &q);
  const S sine = sin(z), cosine = cos(z);
  return (p * (cosine + sine) - q * (sine - cosine)) * ROOT_HALF * sqrt(2 / (3 * S_PI * z)) * root;
}

INLINE S s_spherical_j0(S x) {
  if (isinf(x)) return 0;
  return fabs(x) < S_SMALL ? 1 : sin(x) / x;
}

FUNCTION(airy_, s_airy)
FUNCTION(spherical_j0_, s_spherical_j0)
INLINE T bessel_k_(int order, T x) { return (T)s_k(order, (S)x); }
INLINE T scaled_bessel_k_(int order, T x) { return (T)s_scaled_k(order, (S)x); }
#endif
