// How a draw changes with its distribution's parameter: dx/da = -(dF(x; a) / da) / (dF(x; a) / dx) for the
// distribution function F (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018).
// src/host/cpu/special_draws.cpp has the same methods. special.h includes this file.
#ifndef OCLTENSOR_SPECIAL_DRAWS_H
#define OCLTENSOR_SPECIAL_DRAWS_H

// ---- Gamma(a, 1): F is the incomplete gamma function P(a, x)
// The power series DLMF 8.7.1, differentiated term by term, over the density; for x < a + 1.
INLINE S gamma_slope_series(S a, S x) {
  const S l = log(x);
  S psi = digamma_positive(a) + 1 / a, ratio = 1 / a, sum = 0;
  for (int n = 1; n < 100000; ++n) {
    sum += ratio * (l - psi);
    ratio *= x / (a + n);
    psi += 1 / (a + n);
    if (ratio < fabs(sum) * S_EPSILON) break;
  }
  return -x * sum;
}
// The continued fraction DLMF 8.9.2 of Q by Lentz's method, with the derivative of each step.
INLINE S gamma_slope_fraction(S a, S x) {
  S b = x + 1 - a, c = 1 / S_TINY, d = 1 / b, f = d, slope = d, c_slope = 0, d_slope = d * d;
  for (int i = 1; i < 100000; ++i) {
    const S numerator = i * (a - i);
    b += 2;
    c_slope = i / c - numerator * (c_slope / c) / c - 1;
    c = b + numerator / c;
    const S below = numerator * d + b, below_slope = i * d + numerator * d_slope - 1;
    d = 1 / (below == 0 ? (S)S_TINY : below);
    d_slope = -d * d * below_slope;
    if (c == 0) c = S_TINY;
    const S change = c_slope / c + d_slope / d;
    f *= c * d;
    slope += change;
    if (fabs(c * d - 1) < 10 * S_EPSILON && fabs(change) < 10 * S_EPSILON * fabs(slope)) break;
  }
  return x * f * (log(x) - digamma_positive(a) + slope);
}
// For large a: the normal approximation r + ln(q / r) / r of the distribution (O. Barndorff-Nielsen,
// "Inference on full or partial parameters based on the standardized signed log likelihood ratio", 1986) with
// r = eta sqrt(a), q = (l - 1) sqrt(a), l = x / a, eta^2 / 2 = l - 1 - ln l; ln(q / r) / eta is
// 1/3 - eta / 36 - ..
INLINE S gamma_slope_uniform(S a, S x) {
  const S l = x / a, eta = copysign(sqrt(-2 * log1p_minus(l - 1)), l - 1);
  const S g = fabs(eta) < S_(1e-3) ? 1 + eta / 3 : (l - 1) / eta;
  const S correction = fabs(eta) < S_(1e-2) ? S_(1.0 / 3) - eta / 36 : log(g) / eta;
  return l * (1 + (correction / a - eta) / (2 * g));
}
#define GAMMA_UNIFORM_FROM 4000
INLINE S s_standard_gamma_grad(S a, S x) {
  if (!(a > 0) || x != x || isinf(x) || isinf(a)) return S_NAN;
  if (x <= 0) return 0;
  if (a > GAMMA_UNIFORM_FROM) return gamma_slope_uniform(a, x);
  return x < a + 1 ? gamma_slope_series(a, x) : gamma_slope_fraction(a, x);
}

// ---- Beta(a, b), divided by 1 - x: what the gradient of a Dirichlet distribution is made of
// sum of t(n) (slope + psi(a + b + n) - psi(below + n) [psi(a + b + n) if `fixed`]), t(0) = 1,
// t(n + 1) = t(n) z (a + b + n) / (below + n): the series DLMF 8.17.8, differentiated by a.
INLINE S beta_slope_series(S slope, S total, S below, S z, bool fixed) {
  S term = 1, sum = 0;
  for (int n = 0; n < 100000; ++n) {
    sum += term * slope;
    slope += 1 / (total + n) - (fixed ? 0 : 1 / (below + n));
    const S factor = z * (total + n) / (below + n);
    term *= factor;
    if (factor < 1 && term < fabs(sum) * S_EPSILON * (1 - factor)) break;
  }
  return sum;
}
// For large totals: the same normal approximation, with r^2 / 2 = a ln(m / x) + b ln((1 - m) / (1 - x)),
// m = a / (a + b), q = (x - m) sqrt((a + b) / (m (1 - m))).
INLINE S beta_slope_uniform(S x, S a, S total) {
  const S m = a / total, n = 1 - m, width = sqrt(m * n / total);
  // Both terms of the correction grow near the mean and cancel: there it is taken beside it.
  const S nearest = S_(0.05) * width, z = fabs(x - m) < nearest ? m + nearest : x, y = 1 - z;
  const S square = a * log1p_minus((z - m) / m) + (total - a) * log1p_minus((m - z) / n);
  const S r = copysign(sqrt(-2 * square), z - m);
  const S q = (z - m) / width, joined = (1 + log(q / r)) / (r * r);
  const S r_x = total * (z - m) / (z * y * r), r_a = log(m / z) / r;
  const S q_x = 1 / (z - m), q_a = (1 - n / (z - m)) / total - n / (2 * a);
  const S slope_a = r_a * (1 - joined) + q_a / r, slope_x = r_x * (1 - joined) + q_x / r;
  const S first =
      fabs(x - m) < S_SMALL * m ? 1 / total : x * log1p((x - m) / m) / (total * (x - m));
  return first * (slope_a / r_a) / (slope_x / r_x);
}
#define BETA_TERMS 20
INLINE S s_dirichlet_grad(S x, S a, S total) {
  const S b = total - a, y = 1 - x;
  if (x != x || !(a > 0) || !(b > 0) || isinf(total)) return S_NAN;
  if (x <= 0) return 0;
  if (y < 0) return S_NAN;
  const bool low = x * total <= BETA_TERMS, high = y * total <= BETA_TERMS;
  if (!low && !high && total > 10000) return beta_slope_uniform(x, a, total);
  const S l = log(x) + digamma_positive(total);
  if (low != high ? low : x <= a / total)
    return -x / a * beta_slope_series(l - digamma_positive(a + 1), total, a + 1, x, false);
  return x / b * beta_slope_series(l - digamma_positive(a), total, b + 1, y, true);
}
INLINE T standard_gamma_grad_(T a, T x) { return (T)s_standard_gamma_grad((S)a, (S)x); }
INLINE T dirichlet_grad_(T x, T a, T total) { return (T)s_dirichlet_grad((S)x, (S)a, (S)total); }
#endif
