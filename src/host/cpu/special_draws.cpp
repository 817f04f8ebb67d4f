// How a draw changes with its distribution's parameter: dx/da = -(dF(x; a) / da) / (dF(x; a) / dx)
// for the distribution function F (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization
// gradients", 2018). Each function has its source at the definition.
#include <cmath>

#include "special.h"

namespace ocltensor::cpu::special {
namespace {

constexpr double kTiny = 1e-300;

// ---- Gamma(a, 1): F is the incomplete gamma function P(a, x)
// The power series DLMF 8.7.1, differentiated term by term, over the density; for x < a + 1.
double gamma_slope_series(double a, double x) {
  const double l = std::log(x);
  double psi = digamma(a) + 1 / a, ratio = 1 / a, sum = 0;
  for (int n = 1; n < 100000; ++n) {
    sum += ratio * (l - psi);
    ratio *= x / (a + n);
    psi += 1 / (a + n);
    if (ratio < std::fabs(sum) * 1e-17) break;
  }
  return -x * sum;
}
// The continued fraction DLMF 8.9.2 of Q by Lentz's method, with the derivative of each step.
double gamma_slope_fraction(double a, double x) {
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, f = d, slope = d, c_slope = 0, d_slope = d * d;
  for (int i = 1; i < 100000; ++i) {
    const double numerator = i * (a - i);
    b += 2;
    c_slope = i / c - numerator * (c_slope / c) / c - 1;
    c = b + numerator / c;
    const double below = numerator * d + b, below_slope = i * d + numerator * d_slope - 1;
    d = 1 / (below == 0 ? kTiny : below);
    d_slope = -d * d * below_slope;
    if (c == 0) c = kTiny;
    const double change = c_slope / c + d_slope / d;
    f *= c * d;
    slope += change;
    if (std::fabs(c * d - 1) < 1e-16 && std::fabs(change) < 1e-16 * std::fabs(slope)) break;
  }
  return x * f * (std::log(x) - digamma(a) + slope);
}
// For large a: the normal approximation r + ln(q / r) / r of the distribution (O.
// Barndorff-Nielsen, "Inference on full or partial parameters based on the standardized signed log
// likelihood ratio", 1986) with r = eta sqrt(a), q = (l - 1) sqrt(a), l = x / a, eta^2 / 2 = l - 1
// - ln l; ln(q / r) / eta = 1/3 - eta / 36 - ..
double gamma_slope_uniform(double a, double x) {
  const double l = x / a, eta = std::copysign(std::sqrt(-2 * log1p_minus(l - 1)), l - 1);
  const double g = std::fabs(eta) < 1e-3 ? 1 + eta / 3 : (l - 1) / eta;
  const double correction = std::fabs(eta) < 1e-2 ? 1.0 / 3 - eta / 36 : std::log(g) / eta;
  return l * (1 + (correction / a - eta) / (2 * g));
}
constexpr double kUniformFrom = 4000;

// ---- Beta(a, b), divided by 1 - x: what the gradient of a Dirichlet distribution is made of
// sum of t(n) (slope + psi(a + b + n) - psi(below + n) [psi(a + b + n) if `fixed`]), t(0) = 1,
// t(n + 1) = t(n) z (a + b + n) / (below + n): the series DLMF 8.17.8, differentiated by a.
double beta_slope_series(double slope, double total, double below, double z, bool fixed) {
  double term = 1, sum = 0;
  for (int n = 0; n < 100000; ++n) {
    sum += term * slope;
    slope += 1 / (total + n) - (fixed ? 0 : 1 / (below + n));
    const double factor = z * (total + n) / (below + n);
    term *= factor;
    if (factor < 1 && term < std::fabs(sum) * 1e-17 * (1 - factor)) break;
  }
  return sum;
}
// For large totals: the same normal approximation, with r^2 / 2 = a ln(m / x) + b ln((1 - m) / (1 -
// x)), m = a / (a + b), q = (x - m) sqrt((a + b) / (m (1 - m))).
double beta_slope_uniform(double x, double a, double total) {
  const double m = a / total, n = 1 - m, width = std::sqrt(m * n / total);
  // Both terms of the correction grow near the mean and cancel: there it is taken beside it.
  const double nearest = 0.05 * width, z = std::fabs(x - m) < nearest ? m + nearest : x, y = 1 - z;
  const double square = a * log1p_minus((z - m) / m) + (total - a) * log1p_minus((m - z) / n);
  const double r = std::copysign(std::sqrt(-2 * square), z - m);
  const double q = (z - m) / width, joined = (1 + std::log(q / r)) / (r * r);
  const double r_x = total * (z - m) / (z * y * r), r_a = std::log(m / z) / r;
  const double q_x = 1 / (z - m), q_a = (1 - n / (z - m)) / total - n / (2 * a);
  const double slope_a = r_a * (1 - joined) + q_a / r, slope_x = r_x * (1 - joined) + q_x / r;
  const double first =
      std::fabs(x - m) < 1e-8 * m ? 1 / total : x * std::log1p((x - m) / m) / (total * (x - m));
  return first * (slope_a / r_a) / (slope_x / r_x);
}
constexpr double kTerms = 20;

}  // namespace

double dirichlet_grad(double x, double a, double total) {
  const double b = total - a, y = 1 - x;
  if (x != x || !(a > 0) || !(b > 0) || std::isinf(total)) return kNan;
  if (x <= 0) return 0;
  if (y < 0) return kNan;
  const bool low = x * total <= kTerms, high = y * total <= kTerms;
  if (!low && !high && total > 10000) return beta_slope_uniform(x, a, total);
  const double l = std::log(x) + digamma(total);
  if (low != high ? low : x <= a / total)
    return -x / a * beta_slope_series(l - digamma(a + 1), total, a + 1, x, false);
  return x / b * beta_slope_series(l - digamma(a), total, b + 1, y, true);
}

double standard_gamma_grad(double a, double x) {
  if (!(a > 0) || x != x || std::isinf(x) || std::isinf(a)) return kNan;
  if (x <= 0) return 0;
  if (a > kUniformFrom) return gamma_slope_uniform(a, x);
  return x < a + 1 ? gamma_slope_series(a, x) : gamma_slope_fraction(a, x);
}

}  // namespace ocltensor::cpu::special
